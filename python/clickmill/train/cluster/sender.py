"""Pushes on their way to the servers: a bounded queue, and a thread that empties it.

    send_queue_size                  so many may wait; whoever brings one more waits too
    max_merge_var_num                so many of those that wait are merged into one
    is_sgd_optimizer                 merged gradients are added up, or averaged

The trainer reads the rows of its next batch while its last pushes are still under way: they are older by
what waits. Pushes are numbered when they are sent, and `flush` comes back when all are applied, so ledger
and fences are as exact as without a queue.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill._core import Push, Session

MAX_WAITING = 512
"""Servers remember the rows of no more than about a thousand batches that were not pushed."""


@dataclass
class Counts:
    """What has gone through a queue."""

    pushes: int = 0
    frames: int = 0
    """Pushes as they were sent: after merging."""
    longest: int = 0
    """Most that have waited at once."""
    waits: int = 0
    """Times that the trainer found the queue full."""


def merge_entries(entries: Sequence[str]) -> str:
    """One entry for the ledger that says what `entries` of one lease, in their order, say together."""
    parts = [json.loads(entry) for entry in entries]
    merged = parts[-1]
    for key in ("samples", "batches"):
        merged["entry"][key] = sum(part["entry"][key] for part in parts)
    return json.dumps(merged)


class Sender:
    """Sends what it is given, in order; for one thread that brings pushes."""

    def __init__(self, session: Session, *, size: int, max_merged: int, is_average: bool) -> None:
        self._session = session
        self._size = min(size, MAX_WAITING)
        self._max_merged = max_merged
        self._is_average = is_average
        self._waiting: deque[Push] = deque()
        self._changed = threading.Condition()
        self._is_sending = False
        self._is_closed = False
        self._error: BaseException | None = None
        self._heard = (0, 0)
        self.counts = Counts()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    def put(self, push: Push) -> None:
        """Hand a push over; waits while the queue is full. Raises what sending an earlier one has raised."""
        with self._changed:
            if len(self._waiting) >= self._size:
                self.counts.waits += 1
            self._changed.wait_for(lambda: len(self._waiting) < self._size or self._error is not None)
            self._raise()
            self._waiting.append(push)
            self.counts.pushes += 1
            self.counts.longest = max(self.counts.longest, len(self._waiting))
            self._changed.notify_all()

    def flush(self) -> tuple[int, int]:
        """Wait until all is applied; the updates of the run then, and the fence that was wanted."""
        with self._changed:
            self._changed.wait_for(
                lambda: (not self._waiting and not self._is_sending) or self._error is not None
            )
            self._raise()
            return self._heard

    def close(self) -> None:
        """Drop what still waits and let the thread end, after the frame that is under way."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while pushes := self._next():
            try:
                step, fence, _ = self._session.step([self._merge(pushes)], [])
            except BaseException as error:  # noqa: BLE001 - raised again in the trainer's thread
                with self._changed:
                    self._error = error
                    self._waiting.clear()
                    self._changed.notify_all()
                return
            with self._changed:
                self._heard = (step, fence)
                self._is_sending = False
                self.counts.frames += 1
                self._changed.notify_all()

    def _next(self) -> list[Push]:
        """What goes into the next frame; nothing when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if self._is_closed:
                return []
            count = min(len(self._waiting), self._max_merged)
            taken = [self._waiting.popleft() for _ in range(count)]
            self._is_sending = True
            self._changed.notify_all()
            return taken

    def _merge(self, pushes: Sequence[Push]) -> Push:
        if len(pushes) == 1:
            return pushes[0]
        entry = merge_entries([push.ledger for push in pushes])
        return _core.Push.merge(pushes, entry, self._is_average)
