"""How many rows of a Criteo log become signed batches per CPU second?

Against the CSV readers of polars and pyarrow on the same file, which neither hash nor batch. One thread
and the default number of threads; CPU seconds are user and system time together.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import logs
import machine
import results
from peer import Peer, alternate, available, median, versions

OTHERS = ("polars", "pyarrow")


def peers(file: str) -> list[Peer]:
    one = ("--threads", "1")
    return [
        Peer("clickmill, 1 thread", "clickmill", "parse_clickmill.py", ("--file", file, *one)),
        Peer("polars, 1 thread", "polars", "parse_polars.py", ("--file", file), {"POLARS_MAX_THREADS": "1"}),
        Peer("pyarrow, 1 thread", "pyarrow", "parse_pyarrow.py", ("--file", file, "--single")),
        Peer("clickmill", "clickmill", "parse_clickmill.py", ("--file", file)),
        Peer("polars", "polars", "parse_polars.py", ("--file", file)),
        Peer("pyarrow", "pyarrow", "parse_pyarrow.py", ("--file", file)),
    ]


def rows_per_cpu_second(run: dict[str, Any]) -> float:
    return float(run["samples"] / run["cpu_s"])


def row(name: str, runs: dict[str, list[dict[str, Any]]], file_bytes: int) -> list[str]:
    found = runs[name]
    suffix = name.removeprefix("clickmill").removeprefix("polars").removeprefix("pyarrow")
    against = []
    for other in OTHERS:
        base = runs.get(other + suffix)
        if base is None:
            against.append("")
            continue
        ratios = sorted(
            rows_per_cpu_second(a) / rows_per_cpu_second(b) for a, b in zip(found, base, strict=True)
        )
        against.append(f"{ratios[len(ratios) // 2]:.2f}×")
    cpu_s = median(found, "cpu_s")
    return [
        name,
        f"{median(found, 'samples') / cpu_s / 1000:.0f}k",
        f"{file_bytes / cpu_s / 1e6:.0f}",
        *against,
        f"{cpu_s:.2f}",
        f"{median(found, 'wall_s'):.2f}",
        f"{median(found, 'peak_rss_mb'):.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--peers", nargs="*", help="names of the peers to run; all where none is given")
    arguments = parser.parse_args()

    build = machine.require_release_build()
    facts = results.facts()
    log = logs.make("parsing", rows=arguments.rows)
    (file,) = log.files
    # Once through, so that no peer pays for a cold page cache.
    Path(file).read_bytes()
    runs = alternate(available(peers(file), arguments.peers), arguments.repetitions)
    header = ["peer", "rows per CPU s", "MB per CPU s"]
    header += [f"to {other}" for other in OTHERS]
    header += ["CPU s", "wall s", "peak RSS MB"]
    figures = results.table(header, [row(name, runs, log.report["bytes"]) for name in runs])
    body = f"""{figures}

Medians of {arguments.repetitions} alternating repetitions on {arguments.rows} rows;
ratios are of rows per CPU second, within a repetition and with the same number of threads. clickmill's figure
includes scaling the numbers, hashing all values and deduplicating the signs of each batch of 1000; the other
readers give typed columns of the whole file."""
    found_versions = {"clickmill": build["version"], **versions(runs)}
    results.write("parsing", "Parsing: Criteo TSV to signed batches", body, found_versions, facts)


if __name__ == "__main__":
    main()
