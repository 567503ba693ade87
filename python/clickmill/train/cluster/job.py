"""The job: all that a cluster has to know of a run. Every trainer makes it, and all must make the same."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from clickmill.train.cluster.agreement import agreement
from clickmill.train.cluster.units import Unit, cut, unit_bytes
from clickmill.train.measures import scoring_metrics, training_metrics
from clickmill.train.saving import encode_metrics
from clickmill.train.settings import dense_optimizer_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.config import Config, RunnerConfig
    from clickmill.data.source import DataSet
    from clickmill.train.assembly import Parts
    from clickmill.train.cluster.origin import Start
    from clickmill.train.replica import Replicas


def make_job(
    config: Config,
    runner: RunnerConfig,
    *,
    parts: Parts,
    replicas: Replicas,
    evaluated: DataSet | None,
    settings: Mapping[str, Any],
    start: Start,
) -> dict[str, Any]:
    """As the coordinator and the servers read it."""
    units, passes = _data(runner, parts.data, evaluated)
    hyper = config.hyper_parameters
    dense = np.concatenate([array.ravel() for array in replicas.arrays]) if replicas.arrays else np.zeros(0)
    return {
        "strategy": runner.distribute_strategy,
        "lanes": runner.worker_num,
        "trainers": runner.worker_num,
        "units": [unit.to_json() for unit in units],
        "passes": passes,
        "tables": [
            {
                "config": json.loads(parts.tables.config(name)),
                "restarts": name in parts.tables.restarting,
                "initial": start.tables.get(name),
            }
            for name in parts.tables
        ],
        "dense": {
            "rule": json.loads(dense_optimizer_json(hyper.optimizer, hyper.reg)),
            "size": int(dense.size),
            "initial": base64.b64encode(dense.astype("<f4").tobytes()).decode(),
            "initial_state": start.optimizer_file,
        },
        "metrics": {
            "train": encode_metrics(training_metrics(parts.model)),
            "validation": encode_metrics(scoring_metrics(parts.model, parts.schema)),
        },
        "evicts": True,
        "decides": True,
        "publishes": True,
        "snapshot_interval_ms": max(round(runner.cluster.snapshot_interval_s * 1000), 1),
        "full_every": runner.cluster.snapshot_full_interval,
        "evict_every": runner.evict_interval,
        "publish_every": max(runner.save_step_interval, 0),
        "max_batches": runner.max_batches or 0,
        "max_bad_lines": {
            "train": parts.data.config.max_bad_lines,
            "validation": (parts.data if evaluated is None else evaluated).config.max_bad_lines,
        },
        "agreement": agreement(
            settings, parts.data, parts.data.validation_files if evaluated is None else evaluated.files
        ),
    }


def _data(
    runner: RunnerConfig, data: DataSet, evaluated: DataSet | None
) -> tuple[list[Unit], list[dict[str, Any]]]:
    """All pieces, and which of them each pass reads, in its order."""
    units: list[Unit] = []
    places: dict[Unit, int] = {}

    def place(unit: Unit) -> int:
        if unit not in places:
            places[unit] = len(units)
            units.append(unit)
        return places[unit]

    size = unit_bytes(data.files, runner.worker_num, runner.cluster.lease_bytes)
    held = data.validation_files if evaluated is None else evaluated.files
    held_from = data if evaluated is None else evaluated
    held_size = unit_bytes(held, runner.worker_num, runner.cluster.lease_bytes)
    passes = []
    for number in range(runner.epochs):
        pieces = cut(data.files_of(number), size, can_cut=data.has_lines, is_validation=False)
        is_measured = (number + 1) % runner.evaluate_interval == 0 or number + 1 == runner.epochs
        held_out = cut(held, held_size, can_cut=held_from.has_lines, is_validation=True)
        passes.append(
            {
                "train": [place(unit) for unit in pieces],
                "validation": [place(unit) for unit in held_out] if is_measured else [],
            }
        )
    return units, passes
