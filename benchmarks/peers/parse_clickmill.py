"""Criteo TSV to signed batches with clickmill's reader: numbers scaled, values hashed, signs deduplicated.

In the time: opening the file to the last batch. Not in it: imports, building the schema.
"""

from __future__ import annotations

import argparse
import json
import os

from measure import Stopwatch, report

from clickmill import _core

LOWEST = [0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
HIGHEST = [20, 600, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50]


def schema() -> str:
    slots: list[dict[str, object]] = [{"kind": "label", "name": "click", "column": "label"}]
    for number, (low, high) in enumerate(zip(LOWEST, HIGHEST, strict=True), start=1):
        scale = {"kind": "min_max", "min": [low], "max": [high]}
        slots.append({"kind": "dense", "name": f"I{number}", "transform": scale})
    for number in range(1, 27):
        slots.append({"kind": "sparse", "name": f"C{number}", "tables": ["embedding"]})
    return json.dumps({"version": 1, "slots": slots, "tables": [{"name": "embedding", "dim": 10}]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", required=True)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--threads", type=int, help="parsing threads; one per core where not given")
    arguments = parser.parse_args()

    parsed_schema = _core.Schema(schema())
    config = {
        "files": [arguments.file],
        "format": {"kind": "criteo"},
        "batch_size": arguments.batch_size,
        "threads": arguments.threads or len(os.sched_getaffinity(0)),
    }
    samples = 0
    with Stopwatch() as watch:
        reader = _core.Reader(parsed_schema, json.dumps(config))
        while (batch := reader.next()) is not None:
            samples += batch.num_rows
        reader.close()
    report(samples, watch, versions={"clickmill": json.loads(_core.build_info())["version"]})


if __name__ == "__main__":
    main()
