"""The same file with polars' CSV reader: typed columns, no hashing, no batches.

In the time: opening the file to the finished frame. Not in it: imports. The number of threads is fixed by
POLARS_MAX_THREADS before the import.
"""

from __future__ import annotations

import argparse

import polars
from measure import Stopwatch, report

DTYPES = [polars.Int8] + [polars.Int64] * 13 + [polars.String] * 26
NAMES = ["label"] + [f"I{n}" for n in range(1, 14)] + [f"C{n}" for n in range(1, 27)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", required=True)
    arguments = parser.parse_args()
    schema = dict(zip(NAMES, DTYPES, strict=True))
    with Stopwatch() as watch:
        # Types are given, so that nothing is spent on guessing them.
        frame = polars.read_csv(
            arguments.file, separator="\t", has_header=False, schema=schema, quote_char=None
        )
    report(frame.height, watch, versions={"polars": polars.__version__})


if __name__ == "__main__":
    main()
