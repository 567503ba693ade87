"""How fast is a table of 16M rows, how fast is dedup, and what does a key cost in bytes?

Runs the speed examples of the Rust crates, built in release, one after the other and several times; each
counts CPU time of its one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from typing import TYPE_CHECKING, Any

import machine
import results
from environments import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

# (crate, example): each prints one JSON object of figures.
EXAMPLES = (("clickmill-table", "table_speed"), ("clickmill-samples", "dedup_speed"))


def run(crate: str, example: str, arguments: list[str]) -> dict[str, Any]:
    command = ["cargo", "run", "--quiet", "--release", "--locked", "--package", crate, "--example", example]
    process = subprocess.run(
        [*command, "--", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    figures: dict[str, Any] = json.loads(process.stdout)
    return figures


def rows(example: str, runs: list[dict[str, Any]]) -> list[list[str]]:
    def text(value: float) -> str:
        return f"{value:,.2f}".removesuffix(".00")

    flat = [dict(figures_of(run)) for run in runs]
    found = []
    for key in flat[0]:
        values = [run[key] for run in flat]
        found.append([example, key, text(statistics.median(values)), text(min(values)), text(max(values))])
    return found


def figures_of(run: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The figures of a run; those over batches (mean, median, best) one by one."""
    for key, value in run.items():
        if isinstance(value, dict):
            yield from ((f"{key}, {kind} batch", figure) for kind, figure in value.items())
        else:
            yield key, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()

    facts = machine.facts()
    figures: list[list[str]] = []
    for crate, example in EXAMPLES:
        options = [str(arguments.rows), str(arguments.dim)] if example == "table_speed" else []
        runs = [run(crate, example, options) for _ in range(arguments.repetitions)]
        figures += rows(example, runs)
    body = f"""{results.table(["example", "figure", "median", "lowest", "highest"], figures)}

{arguments.repetitions} runs each, one thread, CPU time of that thread. Keys of `table_speed` are uniform over
all rows, the hardest case for a cache."""
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout
    versions = {"rustc": compiler.split()[1]}
    results.write("table", "Table: keys per second and bytes per key", body, versions, facts)


if __name__ == "__main__":
    main()
