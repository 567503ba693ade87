"""The same file with pyarrow's CSV reader: typed columns, no hashing, no batches.

In the time: opening the file to the finished table. Not in it: imports.
"""

from __future__ import annotations

import argparse

import pyarrow
from measure import Stopwatch, report
from pyarrow import csv

TYPES = [pyarrow.int8()] + [pyarrow.int64()] * 13 + [pyarrow.string()] * 26
NAMES = ["label"] + [f"I{n}" for n in range(1, 14)] + [f"C{n}" for n in range(1, 27)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", required=True)
    parser.add_argument("--single", action="store_true", help="one thread")
    arguments = parser.parse_args()
    if arguments.single:
        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
    with Stopwatch() as watch:
        table = csv.read_csv(
            arguments.file,
            read_options=csv.ReadOptions(column_names=NAMES, use_threads=not arguments.single),
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
            # Types are given, so that nothing is spent on guessing them; values are hexadecimal digits.
            convert_options=csv.ConvertOptions(
                column_types=dict(zip(NAMES, TYPES, strict=True)), check_utf8=False, strings_can_be_null=False
            ),
        )
    report(table.num_rows, watch, versions={"pyarrow": pyarrow.__version__})


if __name__ == "__main__":
    main()
