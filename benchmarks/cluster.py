"""How fast is one pass of CTR-DNN 400-400-400 through a parameter server on loopback?

The task of `training.py`: 500k rows, embedding 10, batch 1000, Adam 1e-3, two cores. Servers and trainers
share them: 1+1 and 2+2. Peers alternate; ratios are taken within a repetition and their median is reported,
with CPU seconds of all processes beside wall time, and the exact held-out AUC beside that of local training.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import logs
import machine
import results
from peer import Peer, alternate, available, median, ratio, versions
from training import TUNED

PRECISIONS = ("fp32", "bf16")
BATCH_SIZE = 1000
# A trainer of its own keeps both cores busy with two threads; of two trainers, each has one.
THREADS = {1: 2, 2: 1}
# The longest at which it loses no AUC to training without servers, 0.7595 (`training.py`). One trainer has
# 0.761 with 2 and 5 ms, 0.7588 with 7, 0.758 with 10; two have 0.761 with 5, 10 and 14 ms, 0.758 with 20.
PULL_INTERVAL_MS = {1: 5, 2: 14}


@dataclass(frozen=True)
class Compared:
    """A peer, the one that it is measured against, and the local training that its AUC is to reach."""

    peer: Peer
    base: str | None = None
    local: str | None = None


def compared(train_rows: int, test_rows: int) -> list[Compared]:
    raw_train = logs.make("train", rows=train_rows)
    raw_test = logs.make("test", rows=test_rows, start_row=train_rows)
    train = logs.make("train-slots", rows=train_rows, file_format="multi_slot", parts=2)
    test = logs.make("test-slots", rows=test_rows, start_row=train_rows, file_format="multi_slot")
    raw = ("--train", *raw_train.files, "--test", *raw_test.files, "--samples", str(train_rows))
    ready = ("--train", *train.files, "--test", *test.files, "--samples", str(train_rows))
    variables = {**TUNED, "OMP_NUM_THREADS": "1"}
    found = []
    for strategy, size in (("async", 1), ("async", 2), ("geo", 1), ("geo", 2), ("sync", 2)):
        counts = ("--servers", str(size), "--trainers", str(size), "--threads", str(THREADS[size]))
        shape = ("--strategy", strategy, *counts)
        base = f"paddle_{strategy}_{size}_{size}"
        # PaddlePaddle's sync crashes; ours is measured against our async.
        if strategy != "sync":
            arguments = (*ready, *shape, "--pull-interval-ms", str(PULL_INTERVAL_MS[size]))
            found.append(Compared(Peer(base, "paddle", "paddle_ps.py", arguments, variables)))
        if strategy == "geo":
            # As shipped: exchanges come early on a busy machine, see `paddle_ps_role.py`.
            arguments = (*ready, *shape, "--geo-patience", "5")
            found.append(
                Compared(Peer(f"{base}_eager", "paddle", "paddle_ps.py", arguments, variables), base)
            )
        for precision in PRECISIONS:
            name = f"clickmill_{strategy}_{size}_{size}_{precision}"
            # Together trainers take the batch that one process takes: with more, fewer updates are made.
            batch_size = ("--batch-size", str(BATCH_SIZE // size))
            arguments = (*raw, *shape, "--precision", precision, *batch_size)
            peer = Peer(name, "clickmill", "clickmill_cluster.py", arguments)
            against = base if strategy != "sync" else f"clickmill_async_{size}_{size}_{precision}"
            found.append(Compared(peer, against, f"clickmill_local_{precision}"))
    for precision in PRECISIONS:
        arguments = (*raw, "--precision", precision)
        found.append(
            Compared(Peer(f"clickmill_local_{precision}", "clickmill", "clickmill_local.py", arguments))
        )
    return found


def row(each: Compared, runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    own, base, local = runs[each.peer.name], runs.get(each.base or ""), runs.get(each.local or "")
    aucs = [run["auc"] for run in own]
    auc = median(own, "auc")
    return [
        each.peer.name,
        f"{median(own, 'samples_per_s') / 1000:.1f}k",
        "" if base is None else f"{ratio(own, base, 'samples_per_s'):.2f}× {each.base}",
        f"{median(own, 'wall_s'):.2f}",
        f"{median(own, 'cpu_s'):.2f}",
        f"{auc:.4f} ({min(aucs):.4f} to {max(aucs):.4f})",
        "" if local is None else f"{auc - median(local, 'auc'):+.4f}",
        f"{median(own, 'peak_rss_mb'):.0f}",
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
    everything = compared(arguments.rows, arguments.test_rows)
    chosen = available([each.peer for each in everything], arguments.peers)
    runs = alternate(chosen, arguments.repetitions)
    header = ["peer", "samples/s", "to", "wall s", "CPU s", "held-out AUC", "AUC to local", "peak RSS MB"]
    figures = results.table(header, [row(each, runs) for each in everything if each.peer.name in runs])
    body = f"""{figures}

Medians of {arguments.repetitions} alternating repetitions; a ratio is the median of the ratios within one.
{arguments.rows} rows trained, {arguments.test_rows} held out. `async_2_2`: two servers and two trainers.

Time runs from opening the text to the last update; start of the processes and evaluation are not in it. CPU
seconds, of the same span of time, and peak memory are sums over all processes; clickmill's processes exchange
messages through shared memory, as they do on one host.
clickmill reads the raw log and hashes it; PaddlePaddle gets the same samples ready-made, hashed and scaled.
PaddlePaddle pushes every batch and pulls dense parameters every {PULL_INTERVAL_MS[1]} ms (1+1) or
{PULL_INTERVAL_MS[2]} ms (2+2): as it comes it merges pushes, which is faster and loses AUC. Its geo, like
ours, exchanges every 100 batches; `eager` is its default, which exchanges when a trainer pauses for 50 ms."""
    found_versions = {"clickmill": build["version"], **versions(runs)}
    results.write("cluster", "Training through a parameter server on loopback", body, found_versions, facts)


if __name__ == "__main__":
    main()
