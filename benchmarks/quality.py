"""How good are the models on real data?

Held-out AUC of a committee of DCN-V2 runs against hashed logistic regression on the same split, and against
the same committee in plain dense PyTorch with the same hyper-parameters. The data are not part of the
project: `--data` names their folder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import machine
import results
from environments import ROOT
from peer import RAISED_MALLOC, Peer, available, versions

SETS = ("criteo_85k", "avazu_37k", "movielens_1m")
# From the README of the data sets.
STATED = {"criteo_85k": 0.76, "avazu_37k": 0.717, "movielens_1m": 0.762}
# The networks are small: a second thread would wait more than it works.
VARIABLES = {**RAISED_MALLOC, "OMP_NUM_THREADS": "1"}
MODELS = (
    ("hashed logistic regression", "quality_logistic.py"),
    ("dense PyTorch", "quality_torch.py"),
    ("clickmill", "quality_clickmill.py"),
)


def peers(folder: Path, data_set: str) -> list[Peer]:
    arguments = ("--data", str(folder), "--set", data_set)
    return [Peer(name, "clickmill", script, arguments, VARIABLES) for name, script in MODELS]


def single_runs(run: dict[str, Any]) -> str:
    """Lowest and highest AUC of one run of a committee."""
    aucs = run.get("aucs_of_single_runs")
    return f"{min(aucs):.4f} to {max(aucs):.4f}" if aucs else ""


def row(data_set: str, name: str, run: dict[str, Any], baseline: float | None) -> list[str]:
    gain = "" if baseline is None else f"{run['auc'] - baseline:+.4f}"
    return [
        data_set,
        name,
        f"{run['auc']:.4f}",
        single_runs(run),
        gain,
        run["model"],
        f"{run['wall_s']:.1f}",
        f"{run['cpu_s']:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=SETS)
    parser.add_argument("--models", nargs="*", help="names of the models to run; all where none is given")
    arguments = parser.parse_args()
    missing = [name for name in arguments.sets if not (arguments.data / name).is_dir()]
    if missing:
        sys.exit(
            f"error: not in {arguments.data}: {', '.join(missing)}\nhint: give their folder with `--data`"
        )

    build = machine.require_release_build()
    facts = results.facts()
    figures: list[list[str]] = []
    splits: list[str] = []
    found_versions = {"clickmill": build["version"]}
    for data_set in arguments.sets:
        runs: dict[str, dict[str, Any]] = {}
        for peer in available(peers(arguments.data, data_set), arguments.models):
            runs[peer.name] = peer.run()
            print(f"{data_set} {peer.name}: AUC {runs[peer.name]['auc']:.4f}", file=sys.stderr)
        baseline = runs.get(MODELS[0][0], {}).get("auc")
        figures += [row(data_set, name, run, baseline) for name, run in runs.items()]
        found_versions |= versions({name: [run] for name, run in runs.items()})
        split = next(iter(runs.values()))["split"]
        splits.append(f"- {data_set}: {split}; README of the data: {STATED[data_set]}")
    header = [
        "data",
        "model",
        "held-out AUC",
        "of a single run",
        "over the baseline",
        "hyper-parameters",
        "wall s",
        "CPU s",
    ]
    body = "\n\n".join([results.table(header, figures), "\n".join(splits)])
    results.write("quality", "Quality: held-out AUC on real data", body, found_versions, facts)


if __name__ == "__main__":
    main()
