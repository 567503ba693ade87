"""What all trainers of a run have to agree on, and what each may have as it likes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from clickmill.train.cluster.units import size_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.data.files import FileRange
    from clickmill.data.source import DataSet

_OWN = (
    "runner.name",
    "runner.class",
    # The data is cut, and lanes are counted, when the run begins; who comes later takes part in that.
    "runner.*_num",
    # Told apart by the coordinator, which adds passes to a run.
    "runner.epochs",
    "runner.*_class*",
    "runner.print_interval",
    # A folder may be moved, and have another name on another host.
    "runner.output_path",
    "runner.save_*_path",
    "runner.tensorboard_path",
    "runner.runner_result_dump_path",
    "runner.selected_gpus",
    "runner.cluster.*_s",
    "runner.cluster.lease_bytes",
    "runner.cluster.snapshot_*",
    "runner.cluster.max_restarts",
    "runner.cluster.memory_budget",
    "runner.cluster.token_file",
    "runner.cluster.tls*",
    "runner.communicator.rpc_*",
    "runner.communicator.thread_pool_size",
    "phase.name",
    "phase.thread_num",
    "dataset.threads",
)
"""Settings that may differ between trainers, and between a run and its resumption."""


def agreement(
    settings: Mapping[str, Any], data: DataSet, validation_files: list[FileRange]
) -> dict[str, Any]:
    """As the job holds it."""
    return {
        "settings": _agreed(settings, ""),
        "files": _identities(data.files),
        "validation_files": _identities(validation_files),
    }


def _agreed(tree: Mapping[str, Any], path: str) -> dict[str, Any]:
    kept = {}
    for key, value in tree.items():
        own = f"{path}{key}"
        if any(fnmatchcase(own, pattern) for pattern in _OWN):
            continue
        kept[key] = _agreed(value, f"{own}.") if isinstance(value, dict) else value
    return kept


def _identities(files: list[FileRange]) -> list[list[Any]]:
    return [[file.identity, file.start, file.start + size_of(file)] for file in files]
