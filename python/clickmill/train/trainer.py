"""The loop over passes, legs and fences.

A pass is cut into legs at fences: where a checkpoint is written or rows are evicted. Fences stand at
batch numbers, never at times, so an interrupted run that is resumed from a checkpoint meets the same
fences, and its numbers are those of a run that was never interrupted.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from clickmill.errors import AbsentSlotError, DataError
from clickmill.train.crew import Crew
from clickmill.train.observer import Interval, Observer, PassEnd, RunStart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from clickmill._core import Batch
    from clickmill.metrics import MetricSet
    from clickmill.train.replica import Replicas
    from clickmill.train.schedule import Schedule
    from clickmill.train.step import Stepper
    from clickmill.train.stopping import EarlyStopping
    from clickmill.train.stopwatch import Stopwatch

T = TypeVar("T")


class BatchSource(Protocol):
    """One pass over the data."""

    def next(self) -> Batch | None:
        """The next batch; None at the end of the pass, or AbsentSlotError there if a slot never occurred."""

    def progress(self) -> tuple[int, int]:
        """Bytes read and bytes in all; (0, 0) where nobody knows."""

    def bad_lines(self) -> str:
        """JSON: how many lines were skipped, and the first of them."""

    def close(self) -> None:
        """Stop reading."""


@runtime_checkable
class Waiting(Protocol):
    """A source whose batches may be long in coming."""

    def abandon(self) -> None:
        """End the wait for one, on whatever thread."""


class Together(Protocol):
    """What a step was for all who took part in it."""

    def samples(self, batch: Batch) -> int:
        """Samples of the step that `batch` was this process's part of; called once for each, in order."""

    def loss(self, loss: float, num_rows: int) -> float:
        """Mean loss of the step, of which `num_rows` samples here had `loss`."""


class Alone:
    """Nobody else took part."""

    def samples(self, batch: Batch) -> int:
        return batch.num_rows

    def loss(self, loss: float, num_rows: int) -> float:
        del num_rows
        return loss


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
    evaluate_interval: int
    """Passes between validations; the last pass is always validated."""
    schedule_metric: str
    """What the learning-rate schedule looks at."""
    stopping_metric: str
    """What early stopping looks at."""


class Fences(Protocol):
    """What can happen at a fence; implemented by the run."""

    def start_pass(self, place: Place) -> None:
        """Get ready for the first batch of a pass."""

    def save_step(self, place: Place) -> None:
        """Write a checkpoint in the middle of a pass."""

    def save_unfinished(self, place: Place) -> None:
        """Write a checkpoint of a pass that was trained to its end and must not count as one."""

    def save_pass(self, place: Place, metrics: dict[str, float], *, has_stopped: bool, is_last: bool) -> None:
        """Write the checkpoint of a finished pass, if one is due; `metrics` empty if not measured."""

    def evict(self) -> dict[str, int]:
        """Evict rows by the tables' policies; rows that are left, by table."""

    @property
    def has_validation(self) -> bool:
        """Whether there is validation data."""

    def validate(self) -> dict[str, float]:
        """Metrics of the validation data; empty where there is none."""


@dataclass
class Trainer:
    """Runs passes until the plan, or early stopping, says that it is enough."""

    plan: Plan
    stepper: Stepper[Any]
    replicas: Replicas
    metrics: MetricSet
    schedule: Schedule
    stopping: EarlyStopping | None
    open_pass: Callable[[int, str | None], BatchSource]
    fences: Fences
    observers: Sequence[Observer]
    learning_rate: float
    stopwatch: Stopwatch
    together: Together = field(default_factory=Alone)
    place: Place = field(default_factory=Place)
    last_validation: Mapping[str, float | None] = field(default_factory=dict)
    last_train: dict[str, float] = field(default_factory=dict)
    last_bad_lines: int = 0
    _source: BatchSource | None = None
    _leg_left: int | None = None
    _is_exhausted: bool = False
    _absent_slot: AbsentSlotError | None = None
    _mark: tuple[float, int] = (0.0, 0)

    def run(self, start: RunStart) -> None:
        """Train from `place` to the end of the plan."""
        self._tell(lambda o: o.run_start(start))
        while self.place.pass_number < self.plan.passes:
            should_stop = self._run_pass()
            self.place.pass_number += 1
            self.place.batch = self.place.samples = 0
            self.place.position = None
            if should_stop:
                break

    def next_batch(self) -> Batch | None:
        """The next batch of this leg; None at its end."""
        if self._leg_left == 0:
            return None
        assert self._source is not None
        try:
            batch = self._timed("read", self._source.next)
        except AbsentSlotError as error:
            # All samples have been read and shall be trained on: what they taught is saved first.
            self._absent_slot = error
            batch = None
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
        num_samples = self.together.samples(batch)
        place.samples += num_samples
        if batch.num_rows:
            place.position = batch.position
        done, _ = self._source.progress()
        for observer in self.observers:
            observer.advance(num_samples, done)
        if self.plan.print_interval and (place.batch - 1) % self.plan.print_interval == 0:
            self._tell_interval(self.together.loss(loss, batch.num_rows))

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
            if self._absent_slot is not None:
                self.fences.save_unfinished(place)
                raise self._absent_slot
            bad: dict[str, Any] = json.loads(self._source.bad_lines())
        finally:
            self._source.close()
        if place.batch == 0:
            raise DataError(
                f"pass {place.pass_number} had no batch: the data has fewer samples than `batch_size`",
                hint="make `batch_size` smaller, or keep the last batch with `keep_last: true`",
            )
        return self._finish_pass(time.perf_counter() - started, int(bad["count"]))

    def _run_leg(self) -> bool:
        """Train up to the next fence; False when the pass is over."""
        self._leg_left = self._batches_to_fence()
        if self._leg_left == 0:
            return False
        place = self.place
        with Crew(self.plan.num_workers) as crew, self._ending_waits():
            self.stepper.run(
                crew,
                self.next_batch,
                self.after_step,
                step=place.step,
                pass_number=place.pass_number,
                batch=place.batch,
            )
        self.replicas.average_buffers()
        return not self._is_exhausted

    @contextlib.contextmanager
    def _ending_waits(self) -> Iterator[None]:
        """Around what a signal may end: a worker that waits for a file would be waited for itself."""
        try:
            yield
        except BaseException:
            source: object = self._source
            if isinstance(source, Waiting):
                source.abandon()
            raise

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
            self._timed("evict", self.fences.evict)
        if self.plan.save_step_interval and place.batch % self.plan.save_step_interval == 0:
            self._timed("save", lambda: self.fences.save_step(place))

    def _finish_pass(self, seconds: float, bad_lines: int) -> bool:
        """Evict, validate, tell and save; True if training should stop."""
        place = self.place
        self.last_bad_lines = bad_lines
        rows = self._timed("evict", self.fences.evict)
        is_end = place.pass_number + 1 == self.plan.passes
        is_measured = is_end or (place.pass_number + 1) % self.plan.evaluate_interval == 0
        self.last_train = self.metrics.compute()
        validation = self._timed("validate", self.fences.validate) if is_measured else {}
        self.last_validation = validation
        event = PassEnd(
            place.pass_number,
            place.step,
            place.samples,
            seconds,
            self.last_train,
            validation,
            bad_lines,
            rows,
            self.stopwatch.take(),
        )
        self._tell(lambda o: o.pass_end(event))
        measured = validation or ({} if self.fences.has_validation else self.last_train)
        should_stop = bool(measured) and self._observe(measured)
        is_last = should_stop or is_end
        self._timed(
            "save",
            lambda: self.fences.save_pass(place, measured, has_stopped=should_stop, is_last=is_last),
        )
        self.stopwatch.log(event.stages, place.pass_number, place.batch)
        return should_stop

    def _observe(self, measured: dict[str, float]) -> bool:
        """Show the metrics of a pass to schedule and early stopping; True if training should stop."""
        place = self.place
        if self.schedule.observe(measured[self.plan.schedule_metric]):
            factor = self.schedule.factor(place.step, place.pass_number + 1)
            self._tell(lambda o: o.note(f"learning rate lowered to {self.learning_rate * factor:g}"))
        if self.stopping is None or not self.stopping.observe(measured[self.plan.stopping_metric]):
            return False
        self._tell(lambda o: o.note("early stopping: no improvement for more passes than are forgiven"))
        return True

    def _timed(self, name: str, call: Callable[[], T]) -> T:
        with self.stopwatch.measure(name):
            return call()

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
            stages=self.stopwatch.take(),
        )
        self._tell(lambda o: o.interval(event))
        self.stopwatch.log(event.stages, place.pass_number, place.batch - 1)

    def _tell(self, call: Callable[[Observer], None]) -> None:
        for observer in self.observers:
            call(observer)
