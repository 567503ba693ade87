"""From a configuration to the parts of a run: schema, tables, model, data.

Training builds them new; evaluation and inference build the same parts from a checkpoint, which names
everything that the configuration named when it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from clickmill import _core
from clickmill.data.source import DataSet
from clickmill.nn import load_model_class
from clickmill.schema import build_schema
from clickmill.train.features import Feed, make_feeds, make_inputs
from clickmill.train.settings import make_tables

if TYPE_CHECKING:
    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.nn import Model
    from clickmill.ps.tables import TableSet
    from clickmill.train.checkpoint import Checkpoint


@dataclass(frozen=True)
class Parts:
    """What trainer, evaluator and predictor share."""

    schema: _core.Schema
    tables: TableSet
    feeds: tuple[Feed, ...]
    model: Model
    model_spec: str
    """Name of a built-in model, or path of the user's file."""
    hyper: dict[str, Any]
    data: DataSet


def build_parts(
    config: Config, runner: RunnerConfig, phase: PhaseConfig, *, checkpoint: Checkpoint | None = None
) -> Parts:
    """Parts of a phase; with a checkpoint its schema and its hyper-parameters are the ones that count."""
    spec = checkpoint_model(checkpoint) if checkpoint else phase.model
    model_class = load_model_class(spec, Path())
    hyper = checkpoint.manifest.hyper if checkpoint else config.hyper_parameters.for_model()
    requests = model_class.tables(hyper)
    dataset = config.dataset_named(phase.dataset_name)
    data = DataSet(dataset, Path(), seed=runner.seed, shuffle_files=phase.shuffle_filelist)
    if checkpoint:
        schema = _core.Schema((checkpoint.folder / "schema.json").read_text(encoding="utf-8"))
    else:
        schema = data.fit(
            build_schema(dataset, config.hyper_parameters, requests, seed=runner.seed).to_core()
        )
    tables = make_tables(schema, config.hyper_parameters, requests)
    feeds = make_feeds(schema)
    # Dense parameters are drawn from the runner's seed alone, whatever ran in this process before.
    with torch.random.fork_rng():
        torch.manual_seed(runner.seed)
        model = model_class(make_inputs(schema, feeds), hyper)
    return Parts(schema, tables, feeds, model, spec, hyper, data)


def checkpoint_model(checkpoint: Checkpoint) -> str:
    """How to load the model of a checkpoint: a built-in name, or the copy of the user's file in it."""
    own = checkpoint.folder / "model.py"
    return str(own) if own.is_file() else checkpoint.manifest.model


def load_dense(model: torch.nn.Module, folder: Path) -> None:
    """Parameters and buffers of the dense net from a checkpoint folder."""
    from safetensors.torch import load_file  # noqa: PLC0415 - only where dense parameters are read

    model.load_state_dict(load_file(folder / "dense.safetensors"))


def load_tables(tables: TableSet, checkpoint: Checkpoint) -> None:
    """Rows of all tables from a checkpoint and those that it builds on."""
    for name in tables:
        tables.load(name, checkpoint.table_files(name))
