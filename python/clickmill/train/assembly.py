"""From a configuration to the parts of a run: schema, tables, model, data.

Training builds them new; evaluation and inference build the same parts from a checkpoint, which names
everything that the configuration named when it was written.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from clickmill import _core
from clickmill.data.source import DataSet
from clickmill.errors import ConfigError
from clickmill.nn import load_model_class
from clickmill.schema import build_schema
from clickmill.train.features import Feed, make_feeds, make_inputs
from clickmill.train.members import ALONE
from clickmill.train.settings import make_tables
from clickmill.train.warm_start import adopt_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.nn import Model
    from clickmill.ps.tables import TableSet
    from clickmill.schema import SchemaConfig
    from clickmill.train.checkpoint import Checkpoint
    from clickmill.train.members import Members


@dataclass(frozen=True)
class Parts:
    """What trainer, evaluator and predictor share."""

    schema: _core.Schema
    tables: TableSet
    feeds: tuple[Feed, ...]
    model: Model
    model_spec: str
    """Name of a built-in model, or path of the user's file."""
    model_source: str | None
    """Text of the user's file as it was loaded; None for a built-in model."""
    hyper: dict[str, Any]
    data: DataSet


def plan_schema(
    config: Config, runner: RunnerConfig, phase: PhaseConfig, model_class: type[Model]
) -> SchemaConfig:
    """The schema that a configuration asks for, before it is fitted to the data."""
    hyper = config.hyper_parameters
    with _lines_of(config):
        requests = model_class.tables(hyper.for_model())
    return build_schema(config.dataset_named(phase.dataset_name), hyper, requests, seed=runner.seed)


def check_label(config: Config, dataset_name: str) -> None:
    """Refuse a data set whose samples have no label, before anything of it is read."""
    if not build_schema(config.dataset_named(dataset_name), config.hyper_parameters).labels:
        raise ConfigError(
            f"data set `{dataset_name}` has no label: there is nothing to learn from or to compare with",
            hint="name it with `label_slot`, or give the schema a slot of kind `label`",
        )


def build_parts(
    config: Config,
    runner: RunnerConfig,
    phase: PhaseConfig,
    *,
    checkpoint: Checkpoint | None = None,
    origin: Checkpoint | None = None,
    reads_labels: bool = True,
    members: Members = ALONE,
) -> Parts:
    """Parts of a phase; with a checkpoint its schema and its hyper-parameters are the ones that count.

    `origin` is the checkpoint of another run that a new one starts from. Without `reads_labels` samples are
    what the model sees of them, and need have nothing else. `members` share the samples, and the rows where
    they say so.
    """
    spec = checkpoint_model(checkpoint) if checkpoint else phase.model
    model_class = load_model_class(spec, Path())
    source = model_source(spec)
    hyper = checkpoint.manifest.hyper if checkpoint else config.hyper_parameters.for_model()
    requests = model_class.tables(hyper)
    dataset = config.dataset_named(phase.dataset_name)
    data = DataSet(
        dataset,
        Path(),
        seed=runner.seed,
        shuffle_files=phase.shuffle_filelist,
        has_binary_label=model_class.task == "binary",
        share=members.data_share,
    )
    if checkpoint:
        schema = _core.Schema((checkpoint.folder / "schema.json").read_text(encoding="utf-8"))
    else:
        planned = plan_schema(config, runner, phase, model_class)
        schema = data.fit((adopt_tables(planned, origin) if origin else planned).to_core())
    if not reads_labels:
        schema = _inputs_alone(schema)
    tables = make_tables(schema, config.hyper_parameters, requests, share=members.row_share)
    feeds = make_feeds(schema)
    # Dense parameters are drawn from the runner's seed alone, whatever ran in this process before.
    with torch.random.fork_rng(), contextlib.nullcontext() if checkpoint else _lines_of(config):
        torch.manual_seed(runner.seed)
        model = model_class(make_inputs(schema, feeds), hyper)
    name = checkpoint.manifest.model if checkpoint else spec
    return Parts(schema, tables, feeds, model, name, source, hyper, data)


@contextlib.contextmanager
def _lines_of(config: Config) -> Iterator[None]:
    """A model names the hyper-parameter that it cannot take; the file knows in which line it stands."""
    try:
        yield
    except ConfigError as error:
        placed = config.placed(error)
        if placed is error:
            raise
        raise placed from error


def _inputs_alone(schema: _core.Schema) -> _core.Schema:
    """The schema without labels, weights and groups."""
    content = json.loads(schema.to_json())
    content["slots"] = [slot for slot in content["slots"] if slot["kind"] in {"sparse", "dense"}]
    return _core.Schema(json.dumps(content))


def checkpoint_model(checkpoint: Checkpoint) -> str:
    """How to load the model of a checkpoint: a built-in name, the user's file, or the copy of it.

    The file itself is taken where it is still the same, since it may import its neighbours.
    """
    name = checkpoint.manifest.model
    own = checkpoint.folder / "model.py"
    if not own.is_file() or model_source(name) == own.read_text(encoding="utf-8"):
        return name
    return str(own)


def model_source(spec: str) -> str | None:
    """Text of a user's model; None for a built-in one, and for a file that is not there."""
    path = Path(spec)
    is_file = path.suffix == ".py" and path.is_file()
    return path.read_text(encoding="utf-8") if is_file else None


def load_dense(model: torch.nn.Module, folder: Path) -> None:
    """Parameters and buffers of the dense net from a checkpoint folder."""
    from safetensors.torch import load_file  # noqa: PLC0415 - only where dense parameters are read

    model.load_state_dict(load_file(folder / "dense.safetensors"))


def load_tables(tables: TableSet, checkpoint: Checkpoint, *, as_stored: bool = False) -> None:
    """Rows of all tables from a checkpoint and those that it builds on.

    `as_stored`: with the settings in the files, whatever this configuration would train them with.
    """
    for name in tables:
        tables.load(name, checkpoint.table_files(name), as_stored=as_stored)
