"""Writing and reading the state of a run: what goes into a checkpoint, and back."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

from clickmill.train.assembly import load_dense, load_tables
from clickmill.train.checkpoint import (
    OPTIMIZER_FILE,
    VERSION,
    Checkpoint,
    Manifest,
    read_optimizer,
    write_checkpoint,
)
from clickmill.train.trainer import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from clickmill.data.files import FileSize
    from clickmill.metrics import MetricSet
    from clickmill.train.assembly import Parts
    from clickmill.train.dense import DenseOptimizer
    from clickmill.train.journal import Journal
    from clickmill.train.replica import Replicas
    from clickmill.train.schedule import Schedule
    from clickmill.train.stopping import EarlyStopping

    Writer = Callable[[Path], Mapping[str, str]]
    WriteTable = Callable[[str, Path, str | None], str]
    """Table, file and the id of the save that it may be a difference to; gives the id of the new save."""


def encode_metrics(metrics: MetricSet) -> dict[str, str]:
    """The state of a metric set, as JSON holds it."""
    return {name: base64.b64encode(state).decode() for name, state in metrics.state_dict().items()}


class RunState:
    """All state of a training run that changes, in one place."""

    def __init__(
        self,
        *,
        parts: Parts,
        replicas: Replicas,
        optimizer: DenseOptimizer,
        metrics: MetricSet,
        schedule: Schedule,
        stopping: EarlyStopping | None,
        journal: Journal | None,
        settings: Mapping[str, Any],
        write_table: WriteTable,
    ) -> None:
        """Without a `journal` it can be restored, not saved."""
        self.parts = parts
        self.replicas = replicas
        self.optimizer = optimizer
        self.metrics = metrics
        self.schedule = schedule
        self.stopping = stopping
        self.journal = journal
        self._write_table = write_table
        self.settings = settings
        """The configuration as a resumed run compares it with its own."""
        self.files: list[FileSize] = []
        """What the pass under way reads, as it was when the pass began."""

    def save(
        self,
        folder: Path,
        place: Place,
        *,
        run_id: str,
        is_pass_end: bool,
        base: Checkpoint | None,
        metrics: dict[str, float],
        has_stopped: bool = False,
    ) -> tuple[Checkpoint, float]:
        """Write a checkpoint; with `base`, tables as a difference to it. Returns it and its seconds."""
        started = time.perf_counter()
        manifest = Manifest(
            version=VERSION,
            run=run_id,
            pass_number=place.pass_number,
            batch=place.batch,
            step=place.step,
            is_pass_end=is_pass_end,
            model=self.parts.model_spec,
            hyper=self.parts.hyper,
            tables=list(self.parts.tables),
            base=None if base is None else base.folder.name,
            metrics=dict(metrics),
        )
        texts = {
            "schema.json": self.parts.schema.to_json(),
            "settings.json": json.dumps(self.settings, indent=1, ensure_ascii=False),
            "trainer.json": json.dumps(self._trainer(place, has_stopped=has_stopped), indent=1),
        }
        if self.parts.model_source is not None:
            texts["model.py"] = self.parts.model_source
        writers: dict[str, Writer] = {
            "dense.safetensors": self._write_dense,
            OPTIMIZER_FILE: self._write_optimizer,
        }
        for name in self.parts.tables:
            writers[f"tables/{name}.rows"] = self._table_writer(name, base)
        checkpoint = write_checkpoint(folder, manifest, texts=texts, writers=writers)
        return checkpoint, time.perf_counter() - started

    def restore(self, checkpoint: Checkpoint) -> Place:
        """Take everything back from a checkpoint; returns where the run was."""
        load_dense(self.replicas.model, checkpoint.folder)
        self.replicas.copy_buffers()
        self.restore_optimizer(checkpoint)
        load_tables(self.parts.tables, checkpoint)
        self.parts.tables.join_step(checkpoint.manifest.step)
        content = checkpoint.read_json("trainer.json")
        self.metrics.load_state_dict(
            {name: base64.b64decode(state) for name, state in content["metrics"].items()}
        )
        self.schedule.load_state(content["schedule"])
        if self.stopping is not None and content["stopping"] is not None:
            self.stopping.load_state(content["stopping"])
        return Place(**content["place"])

    def restore_optimizer(self, checkpoint: Checkpoint) -> None:
        """Take the state of the dense optimizer."""
        self.optimizer.load_state(*read_optimizer(checkpoint))

    def _trainer(self, place: Place, *, has_stopped: bool) -> dict[str, Any]:
        return {
            "place": place.__dict__,
            "has_stopped": has_stopped,
            "files": [] if place.position is None else self.files,
            "metrics": encode_metrics(self.metrics),
            "schedule": self.schedule.state(),
            "stopping": None if self.stopping is None else self.stopping.state(),
            "journal_bytes": 0 if self.journal is None else self.journal.num_bytes(),
        }

    def _write_dense(self, path: Path) -> dict[str, str]:
        from safetensors.torch import save  # noqa: PLC0415 - only where a checkpoint is written

        state = self.replicas.model.state_dict()
        # As bytes and not by `save_file`, whose errors do not say what went wrong with the file.
        path.write_bytes(save({name: tensor.cpu().contiguous().clone() for name, tensor in state.items()}))
        return {}

    def _write_optimizer(self, path: Path) -> dict[str, str]:
        from safetensors.numpy import save  # noqa: PLC0415

        step, arrays = self.optimizer.state()
        names = {f"{index:05d}": array for index, array in enumerate(arrays)}
        path.write_bytes(save(names, metadata={"step": str(step)}))
        return {}

    def _table_writer(self, name: str, base: Checkpoint | None) -> Writer:
        base_id = None if base is None else base.manifest.files[f"tables/{name}.rows"]["id"]
        return lambda path: {"id": self._write_table(name, path, base_id)}
