"""The run of one rank: as a run of one process, but for what all ranks do or decide together.

Rank 0 alone writes: journal, checkpoints, logs. The others compute the same numbers and follow.
"""

from __future__ import annotations

import json
from collections import Counter as Totals
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.errors import ConfigError, DataError, NoSamplesError
from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.collective.buffers import average_buffers
from clickmill.train.collective.parameters import CollectiveParameters, DeviceSum, HostSum
from clickmill.train.collective.rounds import RoundSource
from clickmill.train.collective.rows import CollectiveRows
from clickmill.train.collective.scores import RoundMetrics, merged
from clickmill.train.collective.sharded_files import receive_table, send_table
from clickmill.train.gpu.net import DeviceReplicas
from clickmill.train.measures import scoring_metrics
from clickmill.train.run import Run

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Sequence

    from clickmill import _core
    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.data.source import BatchSource
    from clickmill.metrics import MetricSet
    from clickmill.train.checkpoint import Checkpoint
    from clickmill.train.collective.group import Group
    from clickmill.train.collective.parameters import Sum
    from clickmill.train.dense import DenseOptimizer
    from clickmill.train.observer import Observer
    from clickmill.train.parameters import Parameters, Rates
    from clickmill.train.replica import Replicas
    from clickmill.train.step import Counter
    from clickmill.train.stopwatch import Stopwatch
    from clickmill.train.trainer import Place, Together


class CollectiveRun(Run):
    """One phase of one runner, as one rank of a group sees it."""

    def __init__(
        self,
        config: Config,
        runner: RunnerConfig,
        phase: PhaseConfig,
        group: Group,
        observers: Sequence[Observer] = (),
    ) -> None:
        super().__init__(
            config, runner, phase, observers if group.members.is_writer else (), members=group.members
        )
        self._group = group
        self._source: RoundSource | None = None

    # Building.

    def _open_folders(self, stack: contextlib.ExitStack) -> None:
        if self.members.is_writer:
            super()._open_folders(stack)

    def _find_checkpoint(self) -> Checkpoint | None:
        """The one that rank 0 has found, read by all."""
        found = super()._find_checkpoint() if self.members.is_writer else None
        told = self._group.rows.tell(found and [str(found.folder), found.manifest.run, found.manifest.step])
        if told is None or found is not None:
            return found
        folder, run_id, step = told
        try:
            checkpoint = open_checkpoint(Path(folder))
        except DataError as error:
            raise DataError(f"rank {self.members.rank}: {error}", hint=_SHARED) from error
        if (checkpoint.manifest.run, checkpoint.manifest.step) != (run_id, step):
            raise DataError(f"rank {self.members.rank}: `{folder}` is of another run", hint=_SHARED)
        return checkpoint

    def _build(self, checkpoint: Checkpoint | None) -> None:
        super()._build(checkpoint)
        place = self.trainer.place
        if place.position is not None:
            place.position = self._own_position(place)

    def _own_position(self, place: Place) -> str | None:
        assert place.position is not None
        positions = json.loads(place.position).get("ranks")
        found = 1 if positions is None else len(positions)
        if positions is None or found != self.members.world:
            raise ConfigError(
                f"cannot resume in the middle of pass {place.pass_number} with {self.members.world} ranks: "
                f"the checkpoint was written by {found}",
                hint="resume with as many ranks; between passes their number may change",
            )
        position: str | None = positions[self.members.rank]
        return position

    def _make_dense(self) -> tuple[Replicas, DenseOptimizer]:
        replicas, optimizer = super()._make_dense()
        replicas.merge = partial(average_buffers, channel=self._group.rows)
        return replicas, optimizer

    def _make_parameters(self, rates: Rates, stopwatch: Stopwatch) -> Parameters[Any]:
        sum_gradients: Sum
        if isinstance(self.replicas, DeviceReplicas):
            assert self._group.device is not None
            sum_gradients = DeviceSum(self._group.device, self.replicas)
        else:
            sum_gradients = HostSum(self._group.dense, [array.size for array in self.replicas.arrays])
        return CollectiveParameters(
            group=self._group,
            tables=self.parts.tables,
            feeds=self.parts.feeds,
            replicas=self.replicas,
            optimizer=self.state.optimizer,
            sum_gradients=sum_gradients,
            rates=rates,
            stopwatch=stopwatch,
        )

    def _counter(self) -> Counter:
        slots = json.loads(self.parts.schema.to_json())["slots"]
        has_weights = any(slot["kind"] == "weight" for slot in slots)
        return RoundMetrics(self.state.metrics, self._group.dense, has_weights=has_weights)

    def _check_slots(self) -> None:
        if self.members.is_writer:
            super()._check_slots()

    # Reading.

    def _open_pass(self, pass_number: int, position: str | None) -> BatchSource:
        open_share = partial(super()._open_pass, pass_number, position)
        limit = self.parts.data.config.max_bad_lines
        self._source = RoundSource(open_share, self.parts.schema, self._group.rows, max_bad_lines=limit)
        return self._source

    def _together(self) -> Together:
        return self

    def samples(self, batch: _core.Batch) -> int:
        """Samples of a round."""
        assert self._source is not None
        return self._source.samples(batch)

    def loss(self, loss: float, num_rows: int) -> float:
        """Mean loss of a round."""
        found = self._group.rows.gather_numbers([loss * num_rows, num_rows]).sum(axis=0)
        return float(found[0] / found[1])

    # What happens at fences.

    def save_step(self, place: Place) -> None:
        """Write a checkpoint with the positions of all ranks."""
        positions = self._group.rows.gather_json(place.position)
        if self.members.has_sharded_rows:
            # The file of all ranks' rows is a new one each time, and no difference to another.
            self.archive.end_chain()
        if self.members.is_writer:
            super().save_step(replace(place, position=json.dumps({"ranks": positions})))
        else:
            self._send_tables()

    def _is_saved(self, place: Place) -> bool:
        is_saved: bool = self._group.rows.tell(super()._is_saved(place) if self.members.is_writer else None)
        return is_saved

    def save_pass(self, place: Place, metrics: dict[str, float], *, has_stopped: bool, is_last: bool) -> None:
        """Write the checkpoint of a pass, on rank 0."""
        if self.members.is_writer:
            super().save_pass(place, metrics, has_stopped=has_stopped, is_last=is_last)
        elif self._is_pass_saved(place, is_last=is_last):
            self._send_tables()

    def _write_table(self, name: str, path: Path, base_id: str | None) -> str:
        if not self.members.has_sharded_rows:
            return super()._write_table(name, path, base_id)
        return receive_table(self.parts.tables[name], path, self._group.rows)

    def _send_tables(self) -> None:
        if self.members.has_sharded_rows:
            for name in self.parts.tables:
                send_table(self.parts.tables[name], self._group.rows)

    def evict(self) -> dict[str, int]:
        """Evict rows; the rows that all ranks together have left."""
        rows = super().evict()
        if self.members.has_sharded_rows:
            rows = dict(sum((Totals(each) for each in self._group.rows.gather_json(rows)), Totals()))
        return rows

    def _read_rows(self, batch: _core.Batch) -> list[_core.Lookup]:
        if not self.members.has_sharded_rows:
            return super()._read_rows(batch)
        return CollectiveRows(self._group, self.parts.tables, self.parts.feeds).read(batch)

    def _of_all(self, metrics: MetricSet) -> MetricSet:
        make = partial(scoring_metrics, self.parts.model, self.parts.schema)
        return merged(metrics, make, self._group.rows)

    def _open_validation(self) -> BatchSource | None:
        if not self.has_validation:
            return None
        return RoundSource(self._open_validation_share, self.parts.schema, self._group.rows)

    def _open_validation_share(self) -> BatchSource:
        source = super()._open_validation()
        assert source is not None
        return source

    def _check_validation(self) -> None:
        source = self._open_validation()
        if source is not None:
            try:
                if source.next() is None:
                    raise NoSamplesError("there is no sample to validate on")
            finally:
                source.close()

    def _summary(self) -> dict[str, Any]:
        return super()._summary() if self.members.is_writer else {}


_SHARED = "all ranks read the checkpoint: it must lie where all their hosts see it, under the same path"
