"""What a cluster starts from: a checkpoint, of which trainers tell the servers what to read.

Dense parameters go to the servers with the job. Rows, and the state of optimizers, each server reads by
itself: its own share, whenever it starts without a snapshot. So the checkpoint must stay where it is, and all
must reach it; of one elsewhere the first trainer makes a copy in the folder of the run, which servers see.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickmill import _core
from clickmill.errors import ConfigError
from clickmill.train.checkpoint import OPTIMIZER_FILE
from clickmill.train.warm_start import check_optimizer, check_tables, take_fitting, take_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.config import RunnerConfig
    from clickmill.train.archive import Archive
    from clickmill.train.assembly import Parts
    from clickmill.train.checkpoint import Checkpoint
    from clickmill.train.replica import Replicas

    Message = dict[str, Any]


ORIGIN = "origin"
"""Folder in that of the run for copies of checkpoints elsewhere."""


@dataclass(frozen=True)
class Start:
    """What servers read at the start of a run."""

    tables: Mapping[str, Message] = field(default_factory=dict)
    """By table: its files, and the learning rate of an optimizer that starts anew on weights alone."""
    optimizer_file: str | None = None
    """With the state of the dense optimizer."""


def start_from(
    origin: Checkpoint, runner: RunnerConfig, *, parts: Parts, replicas: Replicas, rule: str
) -> Start:
    """Take the dense parameters that the runner asks for; what the servers are to take of the rest."""
    model = replicas.model

    def files(name: str) -> list[str]:
        return [str(path.absolute()) for path in origin.table_files(name)]

    if runner.init_model_path:
        take_model(origin, model)
        check_tables(origin, parts.tables)
        check_optimizer(origin, _core.DenseOptimizer(rule, [array.size for array in replicas.arrays]))
        optimizer_file = str((origin.folder / OPTIMIZER_FILE).absolute())
        start = Start({name: {"files": files(name)} for name in parts.tables}, optimizer_file)
    else:
        rates = parts.tables.learning_rate
        names = take_fitting(origin, model, parts.schema, runner)
        start = Start({name: {"files": files(name), "learning_rate": rates(name)} for name in names})
    replicas.copy_buffers()
    return start


def check_origin(origin: Checkpoint, archive: Archive) -> None:
    """Refuse a checkpoint that this run would replace by its own while servers may still need it."""
    folder = origin.folder.absolute()
    if any(folder.parent == own.absolute() for own in (archive.pass_folder, archive.step_folder)):
        raise ConfigError(
            f"`{origin.folder}` lies where this run writes its own checkpoints, and servers that are started "
            "again read it until the first snapshot",
            hint="give the run another `output_path`, or move the checkpoint elsewhere",
        )
