"""What a cluster tells of its run: told once, whichever trainer tells it.

The trainer with the lowest number asks now and then for the metrics, which are counted in one place over all
trainers; the end of a pass is told by the trainer that decides how to go on after it. All of them append to
one journal: whoever is the first to tell something in an epoch says at which step that began. A trainer that
has a log of its own logs how the run goes in any case, for people look at whichever they like.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from clickmill.errors import WireError
from clickmill.train.journal import Journal
from clickmill.train.measures import training_metrics
from clickmill.train.observer import EpochStart, Interval, PassEnd, RunStart, Saved
from clickmill.train.observers import JournalObserver, LogObserver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from clickmill._core import Batch
    from clickmill.ps.coordinator import Coordinator, Membership
    from clickmill.train.assembly import Parts
    from clickmill.train.checkpoint import Checkpoint
    from clickmill.train.observer import Observer
    from clickmill.train.parameters import Rates

    Message = dict[str, Any]

logger = logging.getLogger("clickmill.train")


class Chronicle:
    """Observers of one trainer, and what it tells them."""

    def __init__(
        self,
        *,
        folder: Path,
        parts: Parts,
        rates: Rates,
        print_interval: int,
        observers: Sequence[Observer],
        has_own_log: bool,
    ) -> None:
        self._folder = folder
        self._has_own_log = has_own_log
        self._own = list(observers)
        """They hear of this trainer's work."""
        self._all: list[Observer] = []
        """They hear of the whole run; empty where this trainer does not speak of it."""
        self._metrics = training_metrics(parts.model)
        self._rates = rates
        self._print_interval = print_interval
        self._coordinator: Coordinator | None = None
        self._is_chief = False
        self._epoch = EpochStart(0, 0)
        self._is_epoch_told = False
        self._pass_number = -1
        self._mark = (time.monotonic(), 0)
        self._next_line = 0
        self._first_step = 0
        self._last_step = 0
        """That this trainer has heard of."""
        self.samples = 0

    def join(self, membership: Membership, coordinator: Coordinator, start: RunStart) -> None:
        """This trainer has become a member; the first of them speaks for all."""
        self._close_all()
        self._coordinator = coordinator
        self._is_chief = membership.number == 0
        if self._is_chief:
            is_new = membership.place["step"] == 0
            self._all = [LogObserver(), self._open_journal(keep_bytes=0 if is_new else None)]
        elif self._has_own_log:
            self._all = [LogObserver()]
        for observer in (*self._own, *self._all):
            observer.run_start(start)

    def begin_epoch(self, place: Message) -> bool:
        """The cluster trains from this place on, whatever was told before; whether it has gone back."""
        assert self._coordinator is not None
        now = self._coordinator.metrics()
        # Others may have made a step or two since; where nothing is trained, that is known exactly.
        self._epoch = EpochStart(place["epoch"], now["step"] if place["step"] else 0)
        self._is_epoch_told = False
        self._mark = (time.monotonic(), round(now["numbers"].get("count", 0)))
        self._next_line = 0
        if self._is_chief:
            self._tell_epoch(self._all)
        has_gone_back = bool(now["step"] < self._last_step)
        self._last_step = now["step"]
        return has_gone_back

    def _tell_epoch(self, observers: Sequence[Observer]) -> None:
        if not self._is_epoch_told:
            self._is_epoch_told = True
            for observer in observers:
                observer.epoch_start(self._epoch)

    def begin_pass(self, pass_number: int, total_bytes: int, step: int) -> None:
        """The first lease of a pass is here."""
        if pass_number == self._pass_number:
            return
        self._pass_number = pass_number
        self._mark = (time.monotonic(), 0)
        # A worker that has just begun, or wrote a checkpoint meanwhile, does not know how far the run is.
        self._first_step = max(step, self._epoch.step, self._step_of_run() if self._all else 0)
        self._next_line = step
        for observer in (*self._own, *self._all):
            observer.pass_start(pass_number, total_bytes)

    def _step_of_run(self) -> int:
        """Updates so far, by whichever trainer; 0 where nobody tells."""
        assert self._coordinator is not None
        try:
            return int(self._coordinator.metrics()["step"])
        except WireError as error:
            logger.debug("the step of the run is not to be had: %s", error)
            return 0

    def after_step(self, batch: Batch, loss: float, step: int, bytes_done: int) -> None:
        """A batch has been trained on."""
        self.samples += batch.num_rows
        self._last_step = step
        for observer in self._own:
            observer.advance(batch.num_rows, bytes_done)
        if self._all and step >= self._next_line:
            self._next_line = step + self._print_interval
            self._tell_interval(loss, step)

    def _tell_interval(self, loss: float, step: int) -> None:
        assert self._coordinator is not None
        try:
            numbers = self._coordinator.metrics()["numbers"]
        except WireError as error:
            # The next step finds out what is the matter.
            logger.debug("metrics are not to be had: %s", error)
            return
        now, samples = time.monotonic(), round(numbers.get("count", 0))
        then, before = self._mark
        self._mark = (now, samples)
        rate = self._rates.dense * self._rates.schedule.factor(step, self._pass_number)
        event = Interval(
            pass_number=self._pass_number,
            batch=max(step - self._first_step - 1, 0),
            step=step,
            samples=samples,
            loss=loss,
            learning_rate=rate,
            metrics=self._metrics.complete(numbers),
            samples_per_second=max(samples - before, 0) / max(now - then, 1e-9),
        )
        for observer in (*self._own, *self._all):
            observer.interval(event)

    def end_pass(self, summary: Message, numbers: Callable[[Message, str], dict[str, float]]) -> None:
        """A pass is over on all trainers, and the next one has not begun."""
        assert self._coordinator is not None
        event = PassEnd(
            pass_number=summary["pass"],
            # Updates since the run began, as intervals and checkpoints count: rounds where there are lanes.
            step=self._coordinator.metrics()["step"],
            samples=summary["samples"],
            seconds=summary["seconds"],
            train=numbers(summary, "train"),
            validation=numbers(summary, "validation"),
            bad_lines=summary["bad_lines"],
            table_rows={},
        )
        self._tell_all(lambda observer: observer.pass_end(event))

    def saved(self, checkpoint: Checkpoint, seconds: float) -> None:
        """A checkpoint of the run is durable."""
        manifest = checkpoint.manifest
        event = Saved(
            checkpoint.folder,
            manifest.pass_number - manifest.is_pass_end,
            manifest.batch,
            manifest.step,
            is_full=True,
            seconds=seconds,
        )
        self._tell_all(lambda observer: observer.saved(event))

    def close(self) -> None:
        """Let go of files and the terminal."""
        self._close_all()
        for observer in self._own:
            observer.close()

    def _tell_all(self, call: Callable[[Observer], None]) -> None:
        """Tell the run's observers, also where this trainer does not speak for the others otherwise."""
        if self._is_chief:
            for observer in (*self._own, *self._all):
                call(observer)
            return
        journal = self._open_journal(keep_bytes=None)
        self._tell_epoch([journal])
        for observer in (*self._own, LogObserver(), journal):
            call(observer)
        journal.close()

    def _open_journal(self, *, keep_bytes: int | None) -> Observer:
        return JournalObserver(Journal(self._folder, keep_bytes=keep_bytes))

    def _close_all(self) -> None:
        for observer in self._all:
            observer.close()
        self._all = []
        self._is_chief = False
