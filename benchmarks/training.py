"""How fast is one pass of CTR-DNN 400-400-400 over a Criteo-like log, from text file to last update?

500k rows, embedding 10, batch 1000, Adam 1e-3, two cores. Peers alternate; ratios are taken within a
repetition and their median is reported, with CPU seconds beside wall time and the exact held-out AUC.
"""

from __future__ import annotations

import argparse
from typing import Any

import logs
import machine
import results
from peer import RAISED_MALLOC, Peer, alternate, available, median, ratio, versions

BASE = "paddle_tuned"
# Paddle's MKL takes its slow path on processors that are not Intel's unless told otherwise.
TUNED = {**RAISED_MALLOC, "MKL_DEBUG_CPU_TYPE": "5"}


def peers(train_rows: int, test_rows: int) -> list[Peer]:
    raw_train = logs.make("train", rows=train_rows)
    raw_test = logs.make("test", rows=test_rows, start_row=train_rows)
    train = logs.make("train-slots", rows=train_rows, file_format="multi_slot", parts=2)
    test = logs.make("test-slots", rows=test_rows, start_row=train_rows, file_format="multi_slot")
    raw = ("--train", *raw_train.files, "--test", *raw_test.files, "--samples", str(train_rows))
    ready = ("--train", *train.files, "--test", *test.files, "--samples", str(train_rows))
    return [
        Peer("paddle_tuned", "paddle", "paddle_dataset.py", ready, {**TUNED, "OMP_NUM_THREADS": "1"}),
        Peer("clickmill_fp32", "clickmill", "clickmill_local.py", (*raw, "--precision", "fp32")),
        Peer("clickmill_bf16", "clickmill", "clickmill_local.py", (*raw, "--precision", "bf16")),
        Peer("paddle_as_shipped", "paddle", "paddle_dataset.py", ready),
        Peer("paddle_loader", "paddle", "paddle_loader.py", (*ready, "--workers", "1"), TUNED),
        # With one thread the worker has a core of its own; two threads spin where they have to share.
        Peer("torch_loop", "clickmill", "torch_loop.py", ready, RAISED_MALLOC),
        Peer("torch_loop_2_threads", "clickmill", "torch_loop.py", (*ready, "--threads", "2"), RAISED_MALLOC),
    ]


def row(name: str, runs: list[dict[str, Any]], base: list[dict[str, Any]] | None) -> list[str]:
    def against(key: str) -> str:
        return "" if base is None else f"{ratio(runs, base, key):.2f}×"

    aucs = [run["auc"] for run in runs]
    return [
        name,
        f"{median(runs, 'samples_per_s') / 1000:.1f}k",
        against("samples_per_s"),
        f"{median(runs, 'wall_s'):.2f}",
        f"{median(runs, 'cpu_s'):.2f}",
        f"{median(runs, 'samples') / median(runs, 'cpu_s') / 1000:.1f}k",
        f"{median(runs, 'auc'):.4f} ({min(aucs):.4f} to {max(aucs):.4f})",
        f"{median(runs, 'peak_rss_mb'):.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--test-rows", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--peers", nargs="*", help="names of the peers to run; all where none is given")
    arguments = parser.parse_args()

    build = machine.require_release_build()
    facts = results.facts()
    chosen = available(peers(arguments.rows, arguments.test_rows), arguments.peers)
    runs = alternate(chosen, arguments.repetitions)
    base = runs.get(BASE)
    header = ["peer", "samples/s", f"to {BASE}", "wall s", "CPU s", "samples per CPU s"]
    header += ["held-out AUC", "peak RSS MB"]
    test = logs.make("test", rows=arguments.test_rows, start_row=arguments.rows).report
    figures = results.table(header, [row(name, found, base) for name, found in runs.items()])
    body = f"""{figures}

Medians of {arguments.repetitions} alternating repetitions; a ratio is the median of the ratios within one.
{arguments.rows} rows trained, {arguments.test_rows} held out; the true probability itself has AUC
{test["bayes_auc"]:.4f} on the held-out rows.

Time runs from opening the text to the last update; imports, building the network and evaluation are not in
it. clickmill reads the raw log (numbers, hexadecimal values) and hashes it; the other peers get the same
samples ready-made, hashed and scaled."""
    found_versions = {"clickmill": build["version"], **versions(runs)}
    results.write("training", "Training: text file to last update", body, found_versions, facts)


if __name__ == "__main__":
    main()
