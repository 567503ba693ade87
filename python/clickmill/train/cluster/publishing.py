"""Checkpoints of a cluster: made from a snapshot, in the form that every other command reads."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from clickmill import _core
from clickmill.train.checkpoint import OPTIMIZER_FILE, VERSION, Manifest, write_checkpoint
from clickmill.train.cluster.buffers import encode_buffers, load_buffers
from clickmill.train.cluster.duties import table_chains
from clickmill.train.measures import training_metrics
from clickmill.train.resuming import CLUSTER_KEY
from clickmill.train.saving import encode_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from clickmill.config import RunnerConfig
    from clickmill.train.archive import Archive
    from clickmill.train.assembly import Parts
    from clickmill.train.checkpoint import Checkpoint
    from clickmill.train.cluster.duties import Decider
    from clickmill.train.cluster.snapshot_files import SnapshotFiles
    from clickmill.train.replica import Replicas

    Array = NDArray[np.float32]
    Message = dict[str, Any]
    Writer = Callable[[Path], Mapping[str, str]]


class Publisher:
    """Turns snapshots into checkpoints."""

    def __init__(
        self,
        *,
        parts: Parts,
        replicas: Replicas,
        archive: Archive,
        settings: Mapping[str, Any],
        snapshots: SnapshotFiles,
        runner: RunnerConfig,
        decider: Decider,
    ) -> None:
        self._parts = parts
        self._replicas = replicas
        self._archive = archive
        self._settings = settings
        self._snapshots = snapshots
        self._runner = runner
        self._decider = decider

    def publish(self, pass_number: int, snapshot: Message) -> Checkpoint | None:
        """Write the checkpoint of a pass that has ended; None where the runner wants none of this pass."""
        record = self._snapshots.commit()["run"]
        summary = next(each for each in record["history"] if each["pass"] == pass_number)
        is_ended = record["ledger"]["stage"] == "ended"
        has_stopped = is_ended and pass_number + 1 < self._runner.epochs
        if not self._is_due(pass_number, has_stopped=has_stopped):
            return None
        if not self._archive.run_id:
            self._archive.start_run()
        return self._write(
            self._archive.pass_place(pass_number),
            snapshot,
            {"pass_number": pass_number + 1, "batch": 0, "samples": 0},
            metrics=self._decider.measured(summary),
            schedule=record["schedule"],
            buffers=record["states"].values(),
            state={
                "has_stopped": has_stopped,
                "metrics": encode_metrics(training_metrics(self._parts.model)),
            },
        )

    def publish_step(self, pass_number: int, snapshot: Message, step: Message) -> Checkpoint:
        """Write a checkpoint in the middle of a pass; `step` is what the coordinator knows of that moment."""
        if not self._archive.run_id:
            self._archive.start_run()
        states = json.loads(step["metrics"])["states"]
        metrics = training_metrics(self._parts.model)
        metrics.load_state_dict({name: base64.b64decode(text) for name, text in states.items()})
        return self._write(
            self._archive.step_place(pass_number, step["batch"]),
            snapshot,
            {"pass_number": pass_number, "batch": step["batch"], "samples": step["samples"]},
            metrics=metrics.compute(),
            schedule=step["schedule"],
            buffers=step["states"].values(),
            state={"has_stopped": False, "metrics": states, CLUSTER_KEY: True},
        )

    def _write(
        self,
        folder: Path,
        snapshot: Message,
        place: Message,
        *,
        metrics: Mapping[str, float],
        schedule: str | None,
        buffers: Iterable[str],
        state: Message,
    ) -> Checkpoint:
        with self._snapshots.holding(snapshot) as files:
            return self._write_from(
                files,
                folder,
                snapshot,
                place,
                metrics=metrics,
                schedule=schedule,
                buffers=buffers,
                state=state,
            )

    def _write_from(
        self,
        files: Path,
        folder: Path,
        snapshot: Message,
        place: Message,
        *,
        metrics: Mapping[str, float],
        schedule: str | None,
        buffers: Iterable[str],
        state: Message,
    ) -> Checkpoint:
        dense, states, numbers = self._read_dense(files, snapshot)
        self._spread(dense)
        own = encode_buffers(self._replicas)
        if own is not None:
            # What others told at the last fence, and what this trainer has now.
            load_buffers(self._replicas, [*buffers, own])
        manifest = Manifest(
            version=VERSION,
            run=self._archive.run_id,
            pass_number=place["pass_number"],
            batch=place["batch"],
            step=numbers["step"],
            is_pass_end=CLUSTER_KEY not in state,
            model=self._parts.model_spec,
            hyper=self._parts.hyper,
            tables=list(self._parts.tables),
            base=None,
            metrics={key: value if math.isfinite(value) else None for key, value in metrics.items()},
        )
        decided = json.loads(schedule) if schedule else self._decider.fresh_state()
        trainer = {
            "place": {**place, "step": numbers["step"], "position": None},
            "files": [],
            "schedule": decided["schedule"],
            "stopping": decided["stopping"],
            "journal_bytes": 0,
            **state,
        }
        texts = {
            "schema.json": self._parts.schema.to_json(),
            "settings.json": json.dumps(self._settings, indent=1, ensure_ascii=False),
            "trainer.json": json.dumps(trainer, indent=1),
        }
        if self._parts.model_source is not None:
            texts["model.py"] = self._parts.model_source
        writers: dict[str, Writer] = {
            "dense.safetensors": self._write_dense,
            OPTIMIZER_FILE: lambda path: self._write_optimizer(path, states, numbers),
        }
        for number, table in enumerate(self._parts.tables):
            writers[f"tables/{table}.rows"] = self._table_writer(files, snapshot, number, table)
        return write_checkpoint(folder, manifest, texts=texts, writers=writers)

    def _is_due(self, pass_number: int, *, has_stopped: bool) -> bool:
        every = self._runner.save_checkpoint_interval
        is_last = has_stopped or pass_number + 1 == self._runner.epochs
        return is_last or (every > 0 and (pass_number + 1) % every == 0)

    def _read_dense(self, folder: Path, snapshot: Message) -> tuple[Array, list[Array], dict[str, int]]:
        """All dense parameters, the optimizer's states, and the steps, of all servers' slices."""
        from safetensors import safe_open  # noqa: PLC0415 - only where dense parameters are read

        files = [file for file in snapshot["layers"][-1]["files"] if file["name"].endswith(".safetensors")]
        values: list[Array] = []
        states: list[list[Array]] = []
        numbers: dict[str, int] = {}
        for file in sorted(files, key=lambda each: int(each["server"])):
            with safe_open(folder / file["name"], framework="numpy") as opened:
                numbers = {key: int(value) for key, value in opened.metadata().items()}
                values.append(opened.get_tensor("values"))
                states.append([opened.get_tensor(f"state.{index}") for index in range(numbers["states"])])
        joined = [np.concatenate(parts) for parts in zip(*states, strict=True)]
        return np.concatenate(values), joined, numbers

    def _spread(self, dense: Array) -> None:
        begin = 0
        for array in self._replicas.arrays:
            array[:] = dense[begin : begin + array.size]
            begin += array.size

    def _write_dense(self, path: Path) -> dict[str, str]:
        from safetensors.torch import save  # noqa: PLC0415

        state = self._replicas.model.state_dict()
        path.write_bytes(save({name: tensor.contiguous().clone() for name, tensor in state.items()}))
        return {}

    def _write_optimizer(self, path: Path, states: list[Array], numbers: dict[str, int]) -> dict[str, str]:
        from safetensors.numpy import save  # noqa: PLC0415

        arrays = []
        begin = 0
        for parameter in self._replicas.arrays:
            arrays += [state[begin : begin + parameter.size].copy() for state in states]
            begin += parameter.size
        names = {f"{index:05d}": array for index, array in enumerate(arrays)}
        path.write_bytes(save(names, metadata={"step": str(numbers["optimizer_step"])}))
        return {}

    def _table_writer(self, files: Path, snapshot: Message, number: int, name: str) -> Writer:
        def write(path: Path) -> dict[str, str]:
            chains = table_chains(files, snapshot, number)
            if all(len(chain) == 1 for chain in chains):
                # Copied block by block: the table may be larger than the memory of this process.
                report = _core.join_saves([chain[0] for chain in chains], path)
            else:
                report = _core.Table.load_parts(chains, self._parts.tables.config(name)).save(path)
            return {"id": json.loads(report)["id"]}

        return write
