"""What the quality runs train: the configurations of `benchmarks/quality`, shared by all peers.

The model is DCN-V2 in several runs of different seeds; the score of a sample is the mean over the runs and,
within a run, over the last passes. Hyper-parameters were chosen on parts of the training data alone
(see `benchmarks/quality/README.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clickmill.config import Config, load_config

FOLDER = Path(__file__).resolve().parent.parent / "quality"


@dataclass(frozen=True)
class Committee:
    """Which trained models score together."""

    num_runs: int
    first_pass: int
    """Counted from 0: earlier passes train the network but score nothing."""


COMMITTEES = {
    "criteo_85k": Committee(num_runs=8, first_pass=1),
    "avazu_37k": Committee(num_runs=4, first_pass=1),
    "movielens_1m": Committee(num_runs=2, first_pass=1),
}


def configuration(data_set: str, *overrides: str) -> Config:
    return load_config(FOLDER / f"{data_set}.yaml", overrides=overrides)


def describe(config: Config, committee: Committee) -> str:
    """The model in words, for the table of results."""
    hyper = config.hyper_parameters
    model = hyper.for_model()
    layers = "-".join(str(size) for size in model["fc_sizes"])
    passes = config.runners()[0].epochs
    parts = [
        f"DCN-V2 {model['num_cross_layers']} crosses, {layers}",
        f"dim {model['sparse_feature_dim']}",
        f"dropout {model['dropout']:g}",
        f"batch {config.dataset[0].batch_size}",
        f"Adam {hyper.optimizer.learning_rate:g} (embedding {hyper.table_optimizer.learning_rate:g})",
        f"{committee.num_runs} runs of {passes} passes",
        f"mean of passes {committee.first_pass + 1} to {passes}",
    ]
    if restarts(config):
        parts.append("rows start anew with each pass")
    return ", ".join(parts)


def restarts(config: Config) -> bool:
    table: Any = config.hyper_parameters.tables.get("embedding")
    return table is not None and table.restart_each_pass
