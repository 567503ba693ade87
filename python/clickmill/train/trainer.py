"""The loop over passes, legs and fences.

A pass is cut into legs at fences: where a checkpoint is written or rows are evicted. Fences stand at
batch numbers, never at times, so an interrupted run that is resumed from a checkpoint meets the same
fences, and its numbers are those of a run that was never interrupted.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from clickmill.train.crew import Crew
from clickmill.train.observer import Interval, Observer, PassEnd, RunStart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from clickmill._core import Batch
    from clickmill.metrics import MetricSet
    from clickmill.train.replica import Replicas
    from clickmill.train.schedule import Schedule
    from clickmill.train.step import Stepper
    from clickmill.train.stopping import EarlyStopping


class BatchSource(Protocol):
    """One pass over the data."""

    def next(self) -> Batch | None:
        """The next batch; None at the end of the pass."""

    def progress(self) -> tuple[int, int]:
        """Bytes read and bytes in all; (0, 0) where nobody knows."""

    def bad_lines(self) -> str:
        """JSON: how many lines were skipped, and the first of them."""

    def close(self) -> None:
        """Stop reading."""


@dataclass
class Place:
    """Where a run is; always between two batches."""

    pass_number: int = 0
    batch: int = 0
    """Batches of this pass that are committed."""
    step: int = 0
    samples: int = 0
    """Samples of this pass that are committed."""
    position: str | None = None
    """Reader position after those batches; None at the start of a pass."""


@dataclass(frozen=True)
class Plan:
    """How long to train, and what happens between batches. Intervals count batches; 0 means never."""

    passes: int
    num_workers: int
    print_interval: int
    save_step_interval: int
    evict_interval: int
    max_batches: int
    """Stop a pass after so many batches; 0: at the end of the data."""
    validation_metric: str


class Fences(Protocol):
    """What can happen at a fence; implemented by the run."""

    def start_pass(self, place: Place) -> None:
        """Get ready for the first batch of a pass."""

    def save_step(self, place: Place) -> None:
        """Write a checkpoint in the middle of a pass."""

    def save_pass(
        self, place: Place, train: dict[str, float], validation: dict[str, float], *, is_last: bool
    ) -> None:
        """Write the checkpoint of a finished pass, if one is due."""

    def evict(self) -> dict[str, int]:
        """Evict rows by the tables' policies; rows that are left, by table."""

    def validate(self) -> dict[str, float]:
        """Metrics of the validation data; empty where there is none."""


@dataclass
class Trainer:
    """Runs passes until the plan, or early stopping, says that it is enough."""

    plan: Plan
    stepper: Stepper
    replicas: Replicas
    metrics: MetricSet
    schedule: Schedule
    stopping: EarlyStopping | None
    open_pass: Callable[[int, str | None], BatchSource]
    fences: Fences
    observers: Sequence[Observer]
    learning_rate: float
    place: Place = field(default_factory=Place)
    last_validation: dict[str, float] = field(default_factory=dict)
    last_train: dict[str, float] = field(default_factory=dict)
    _source: BatchSource | None = None
    _leg_left: int | None = None
    _is_exhausted: bool = False
    _mark: tuple[float, int] = (0.0, 0)

    def run(self, *, model: str, num_parameters: int, resumed_from: Path | None) -> None:
        """Train from `place` to the end of the plan."""
        self._tell(
            lambda o: o.run_start(
                RunStart(model, num_parameters, self.plan.num_workers, self.plan.passes, resumed_from)
            )
        )
        while self.place.pass_number < self.plan.passes:
            should_stop = self._run_pass()
            self.place.pass_number += 1
            self.place.batch = self.place.samples = 0
            self.place.position = None
            if should_stop:
                self._tell(lambda o: o.note("early stopping: no improvement for as many passes as allowed"))
                break

    def next_batch(self) -> Batch | None:
        """The next batch of this leg; None at its end."""
        if self._leg_left == 0:
            return None
        assert self._source is not None
        batch = self._source.next()
        if batch is None:
            self._is_exhausted = True
        elif self._leg_left is not None:
            self._leg_left -= 1
        return batch

    def after_step(self, batch: Batch, loss: float) -> None:
        """Count a batch that has been trained on and tell the observers."""
        assert self._source is not None
        place = self.place
        place.batch += 1
        place.step += 1
        place.samples += batch.num_rows
        place.position = batch.position
        done, _ = self._source.progress()
        for observer in self.observers:
            observer.advance(batch.num_rows, done)
        if self.plan.print_interval and (place.batch - 1) % self.plan.print_interval == 0:
            self._tell_interval(loss)

    def _run_pass(self) -> bool:
        started = time.perf_counter()
        place = self.place
        is_fresh = place.batch == 0
        if is_fresh:
            self.metrics.reset()
            self.fences.start_pass(place)
        self._source = self.open_pass(place.pass_number, place.position)
        self._is_exhausted = False
        self._mark = (started, place.samples)
        try:
            total = self._source.progress()[1]
            self._tell(lambda o: o.pass_start(place.pass_number, total))
            while self._run_leg():
                self._between_legs()
            bad: dict[str, Any] = json.loads(self._source.bad_lines())
        finally:
            self._source.close()
        return self._finish_pass(time.perf_counter() - started, int(bad["count"]))

    def _run_leg(self) -> bool:
        """Train up to the next fence; False when the pass is over."""
        self._leg_left = self._batches_to_fence()
        if self._leg_left == 0:
            return False
        with Crew(self.plan.num_workers) as crew:
            self.stepper.run(
                crew,
                self.next_batch,
                self.after_step,
                step=self.place.step,
                pass_number=self.place.pass_number,
            )
        self.replicas.average_buffers()
        return not self._is_exhausted

    def _batches_to_fence(self) -> int | None:
        batch = self.place.batch
        intervals = (self.plan.save_step_interval, self.plan.evict_interval)
        distances = [every - batch % every for every in intervals if every]
        if self.plan.max_batches:
            distances.append(max(self.plan.max_batches - batch, 0))
        return min(distances, default=None)

    def _between_legs(self) -> None:
        place = self.place
        if self.plan.evict_interval and place.batch % self.plan.evict_interval == 0:
            self.fences.evict()
        if self.plan.save_step_interval and place.batch % self.plan.save_step_interval == 0:
            self.fences.save_step(place)

    def _finish_pass(self, seconds: float, bad_lines: int) -> bool:
        place = self.place
        rows = self.fences.evict()
        self.last_train = self.metrics.compute()
        self.last_validation = self.fences.validate()
        event = PassEnd(
            place.pass_number,
            place.step,
            place.samples,
            seconds,
            self.last_train,
            self.last_validation,
            bad_lines,
            rows,
        )
        self._tell(lambda o: o.pass_end(event))
        watched = (self.last_validation or self.last_train)[self.plan.validation_metric]
        if self.schedule.observe(watched):
            factor = self.schedule.factor(place.step, place.pass_number + 1)
            self._tell(lambda o: o.note(f"learning rate lowered to {self.learning_rate * factor:g}"))
        should_stop = self.stopping is not None and self.stopping.observe(watched)
        is_last = should_stop or place.pass_number + 1 == self.plan.passes
        self.fences.save_pass(place, self.last_train, self.last_validation, is_last=is_last)
        return should_stop

    def _tell_interval(self, loss: float) -> None:
        place = self.place
        now = time.perf_counter()
        then, samples = self._mark
        self._mark = (now, place.samples)
        event = Interval(
            pass_number=place.pass_number,
            batch=place.batch - 1,
            step=place.step,
            samples=place.samples,
            loss=loss,
            learning_rate=self.learning_rate * self.schedule.factor(place.step - 1, place.pass_number),
            metrics=self.metrics.compute(),
            samples_per_second=(place.samples - samples) / max(now - then, 1e-9),
        )
        self._tell(lambda o: o.interval(event))

    def _tell(self, call: Callable[[Observer], None]) -> None:
        for observer in self.observers:
            call(observer)
