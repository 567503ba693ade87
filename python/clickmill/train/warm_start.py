"""Starting a new run from the checkpoint of another.

`init_model_path` takes all: dense parameters, rows, and the state of their optimizers; model and tables must
be the same. `init_pretraining_model_path` takes weights alone, dense and of rows, those that fit or those
that are named, and leaves the rest as it was made: the optimizers start anew, and may be others.
"""

from __future__ import annotations

import contextlib
import json
import logging
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.schema import SchemaConfig, TableSpec
from clickmill.store.remote.url import is_url
from clickmill.train.checkpoint import open_checkpoint, read_optimizer
from clickmill.train.remote_checkpoint import local_checkpoint, shared_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import torch

    from clickmill import _core
    from clickmill.config import RunnerConfig
    from clickmill.train.checkpoint import Checkpoint
    from clickmill.train.dense import DenseOptimizer
    from clickmill.train.saving import RunState

logger = logging.getLogger("clickmill.train")


def open_origin(runner: RunnerConfig, *, shared: Path | None = None) -> Checkpoint | None:
    """The checkpoint that a new run starts from; None where it starts from nothing.

    One elsewhere is copied to the cache of this host, or to `shared`, where other processes need it too.
    """
    if runner.init_model_path and runner.init_pretraining_model_path:
        raise ConfigError(
            f"runner `{runner.name}`: give either `init_model_path` or `init_pretraining_model_path`"
        )
    path = runner.init_model_path or runner.init_pretraining_model_path
    if not path:
        return None
    if shared is not None and is_url(path):
        return open_checkpoint(shared_checkpoint(path, shared))
    return open_checkpoint(local_checkpoint(path))


def adopt_tables(schema: SchemaConfig, origin: Checkpoint) -> SchemaConfig:
    """The schema with the tables as `origin` has them, where they have the same width.

    The initial value of a row is a function of its table's seed; signs that `origin` never stored must go on
    reading as it saw them.
    """
    stored = {
        each["name"]: TableSpec.model_validate(each) for each in origin.read_json("schema.json")["tables"]
    }
    tables = tuple(
        stored[table.name] if table.name in stored and stored[table.name].dim == table.dim else table
        for table in schema.tables
    )
    return schema.model_copy(update={"tables": tables})


def take_from(origin: Checkpoint, state: RunState, runner: RunnerConfig) -> None:
    """Take from `origin` what the runner asks for; ConfigError where it does not fit."""
    tables, model = state.parts.tables, state.replicas.model
    if runner.init_model_path:
        take_model(origin, model)
        check_tables(origin, tables)
        for name in tables:
            tables.load(name, origin.table_files(name))
        with _of_optimizer(origin):
            state.restore_optimizer(origin)
    else:
        for name in take_fitting(origin, model, state.parts.schema, runner):
            tables.load_weights(name, origin.table_files(name))
    state.replicas.copy_buffers()
    tables.join_step(0)


def take_model(origin: Checkpoint, model: torch.nn.Module) -> None:
    """All dense parameters and buffers of a checkpoint."""
    try:
        model.load_state_dict(_dense(origin))
    except RuntimeError as error:
        raise ConfigError(
            f"the model of `{origin.folder}` (`{origin.manifest.model}`) is not the one of this run: {error}",
            hint="`init_pretraining_model_path` takes what fits",
        ) from error


def check_tables(origin: Checkpoint, names: Iterable[str]) -> None:
    """Refuse a checkpoint that lacks a table."""
    for name in names:
        if name not in origin.manifest.tables:
            raise ConfigError(
                f"`{origin.folder}` has no table `{name}`; it has: {', '.join(origin.manifest.tables)}",
                hint="`init_pretraining_model_path` takes what fits",
            )


def check_optimizer(origin: Checkpoint, optimizer: DenseOptimizer) -> None:
    """Refuse a checkpoint whose dense optimizer is not like `optimizer`, which takes its state."""
    with _of_optimizer(origin):
        optimizer.load_state(*read_optimizer(origin))


@contextlib.contextmanager
def _of_optimizer(origin: Checkpoint) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ConfigError(
            f"the dense optimizer of `{origin.folder}` is not the one of this run: {error}",
            hint="`init_pretraining_model_path` takes parameters only",
        ) from error


def take_fitting(
    origin: Checkpoint, model: torch.nn.Module, schema: _core.Schema, runner: RunnerConfig
) -> list[str]:
    """Take the dense parameters that fit, or those that the runner names; the tables whose weights fit.

    Names are of parameters, of modules (`mlp`: all below it) or of tables.
    """
    wanted = tuple(runner.finetuning_aspect_varnames)
    tensors = _dense(origin)
    own = model.state_dict()
    fitting = [name for name in tensors if name in own and own[name].shape == tensors[name].shape]
    own_tables = {each["name"]: each for each in json.loads(schema.to_json())["tables"]}
    origin_tables = {each["name"]: each for each in origin.read_json("schema.json")["tables"]}
    tables = [name for name in own_tables if origin_tables.get(name) == own_tables[name]]
    for name in wanted:
        if not any(_is_below(each, name) for each in (*fitting, *tables)):
            raise ConfigError(
                f"`finetuning_aspect_varnames`: nothing named `{name}` in `{origin.folder}` fits this run; "
                f"what fits: {', '.join((*fitting, *tables)) or 'nothing'}"
            )
    if wanted:
        fitting = [name for name in fitting if any(_is_below(name, each) for each in wanted)]
        tables = [name for name in tables if name in wanted]
    if not fitting and not tables:
        raise ConfigError(f"nothing of `{origin.folder}` fits this run")
    model.load_state_dict({name: tensors[name] for name in fitting}, strict=False)
    left = [name for name in (*own, *own_tables) if name not in fitting and name not in tables]
    logger.info(
        "run.pretrained path=%s taken=%d new=%s", origin.folder, len(fitting) + len(tables), ",".join(left)
    )
    return tables


def _is_below(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def _dense(origin: Checkpoint) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file  # noqa: PLC0415 - only where dense parameters are read

    return load_file(origin.folder / "dense.safetensors")
