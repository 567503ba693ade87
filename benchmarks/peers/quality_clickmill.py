"""clickmill on the real data sets: the committee of `quality_model`, trained from the raw files.

In the time: everything, from the split of the files to the last score.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from measure import Stopwatch, report
from quality_model import COMMITTEES, configuration, describe
from real_data import LOADERS

from clickmill import _core
from clickmill.data.split import Fields, split_log
from clickmill.train.api import evaluate, train

if TYPE_CHECKING:
    from clickmill.config import Config

FILES = {
    "criteo_85k": ("criteo_sample85k.tsv", 0.2, "order", Fields("\t", has_header=False)),
    "avazu_37k": ("avazu.csv", 0.2, "order", Fields(",", has_header=True)),
    "movielens_1m": ("ratings.dat", 0.1, "4", Fields("::", has_header=False)),
}


def prepare(folder: Path, data_set: str, workspace: Path) -> int:
    """Write train and test into the workspace; the number of samples to train on."""
    name, fraction, by, fields = FILES[data_set]
    source = folder / data_set / name
    split = split_log(source, workspace, fraction=fraction, by=by, fields=fields)
    split.train.rename(workspace / f"train{source.suffix}")
    split.test.rename(workspace / f"test{source.suffix}")
    if data_set == "movielens_1m":
        for side in ("users.dat", "movies.dat"):
            (workspace / side).symlink_to((folder / data_set / side).resolve())
    return split.train_lines


def held_out_auc(config: Config, checkpoints: list[Path]) -> float:
    return float(evaluate(config, checkpoints=checkpoints)["exact_auc"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=sorted(LOADERS), required=True)
    arguments = parser.parse_args()

    committee = COMMITTEES[arguments.set]
    runs: list[list[Path]] = []
    with tempfile.TemporaryDirectory() as folder, Stopwatch() as watch:
        num_train = prepare(arguments.data, arguments.set, Path(folder))
        for seed in range(1, committee.num_runs + 1):
            output = Path(folder) / f"run-{seed}"
            config = configuration(
                arguments.set,
                f"workspace={folder}",
                f"runner.0.seed={seed}",
                f"runner.0.output_path={output}",
            )
            train(config)
            passes = range(committee.first_pass, config.runners()[0].epochs)
            runs.append([output / "checkpoints" / str(number) for number in passes])
        single = [held_out_auc(config, run) for run in runs]
        auc = held_out_auc(config, [checkpoint for run in runs for checkpoint in run])
    report(
        num_train * config.runners()[0].epochs * committee.num_runs,
        watch,
        auc=auc,
        aucs_of_single_runs=single,
        model=describe(config, committee),
        split=LOADERS[arguments.set](arguments.data).split,
        versions={"clickmill": json.loads(_core.build_info())["version"], "torch": torch.__version__},
    )


if __name__ == "__main__":
    main()
