"""What a trainer of a cluster says of itself: to the coordinator, to its journal, to a scraper.

Every trainer has a journal of its own in the folder of the run, `trainers/<incarnation>.jsonl`, which
`clickmill report` reads with those of the others.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from clickmill.errors import StorageError
from clickmill.train.bound import shares_of
from clickmill.train.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clickmill.train.stopwatch import Stopwatch

logger = logging.getLogger("clickmill.train")

JOURNALS = "trainers"
"""Folder of the trainers' journals in that of a run."""

_WINDOW_S = 5.0
"""Speeds and shares are told of at least so long."""


class Meter:
    """Counts what a trainer does; told of every step by the thread that trains, asked from any."""

    def __init__(self, stopwatch: Stopwatch, folder: Path) -> None:
        self.stopwatch = stopwatch
        self.samples = 0
        self.batches = 0
        self.traffic: Callable[[], tuple[int, int]] = lambda: (0, 0)
        """Bytes sent and received by the session under way."""
        self.queue: Callable[[], int] = lambda: 0
        """Batches at hand that have not been pushed."""
        self._traffic_before = (0, 0)
        self._folder = folder / JOURNALS
        self._journal: Journal | None = None
        self._lock = threading.Lock()
        self._mark = (time.monotonic(), 0, stopwatch.totals())
        self._told: dict[str, Any] = {"samples_per_s": 0.0, "shares": {}}

    def begin(self, incarnation: int, name: str, number: int, units: int) -> None:
        """The trainer is a member from now on, by this number; a pass has up to `units` pieces of data."""
        self.end()
        # What came before was no training.
        self.stopwatch.take()
        try:
            self._journal = Journal(self._folder, name=f"{incarnation}.jsonl")
        except OSError as error:
            self._give_up(error)
        self._write("trainer_start", name=name, number=number, units=units)

    def advance(self, samples: int) -> None:
        """A batch has been trained on."""
        self.samples += samples
        self.batches += 1

    def change_session(self, traffic: Callable[[], tuple[int, int]]) -> None:
        """Another session carries on."""
        self._traffic_before, self.traffic = self.bytes(), traffic

    def bytes(self) -> tuple[int, int]:
        """Bytes sent and received so far."""
        (sent, received), (sent_now, received_now) = self._traffic_before, self.traffic()
        return sent + sent_now, received + received_now

    def interval(self) -> None:
        """Write what was done since the last time to the journal."""
        self._write("interval", samples=self.samples, batches=self.batches, stages=self.stopwatch.take())

    def end(self) -> None:
        """The last words of this membership."""
        self.interval()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def statistics(self) -> dict[str, Any]:
        """For a heartbeat: speed and shares over the last seconds."""
        with self._lock:
            now, totals = time.monotonic(), self.stopwatch.totals()
            then, samples, before = self._mark
            if now - then >= _WINDOW_S or not self._told["shares"]:
                spent = {
                    stage: max(seconds - before.get(stage, 0.0), 0.0) for stage, seconds in totals.items()
                }
                self._told = {
                    "samples_per_s": (self.samples - samples) / max(now - then, 1e-9),
                    "shares": shares_of(spent),
                }
            if now - then >= _WINDOW_S:
                self._mark = (now, self.samples, totals)
            sent, received = self.bytes()
            return {
                **self._told,
                "samples": self.samples,
                "batches": self.batches,
                "bytes_sent": sent,
                "bytes_received": received,
            }

    def _write(self, event: str, **fields: Any) -> None:
        if self._journal is None:
            return
        try:
            self._journal.write(event, time=time.time(), **fields)
        except StorageError as error:
            self._journal.close()
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """A report with a gap is no reason to stop training."""
        logger.warning("trainer.journal_given_up reason=%s", error)
        self._journal = None
