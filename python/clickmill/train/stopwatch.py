"""Where the time of a run goes, by stage; always on, and cheap: two looks at the clock a stage and batch.

Only the thread that trains makes a run slow. What other threads do beside it counts when it has to wait for
them: that time is shared out by what they did since it last waited. So the seconds of all stages add up to no
more than the time that passed, and the stage with most of them is the one to make faster.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger("clickmill.train")

OTHER = "other"
"""Time of no stage."""


class Stopwatch:
    """Adds up seconds by stage; made by the thread that trains."""

    def __init__(self, *, is_logged: bool = False) -> None:
        """`is_logged`: `log` writes a line, as `debug: true` asks for."""
        self._is_logged = is_logged
        self._owner = threading.get_ident()
        self._began = time.perf_counter()
        self._seconds: dict[str, float] = {}
        self._beside: dict[str, float] = {}
        self._inner: list[float] = []
        """Seconds of stages inside of those under way, which are not theirs."""
        self._marked: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Count the time of the block, without that of stages inside of it."""
        is_beside = threading.get_ident() != self._owner
        started = time.perf_counter()
        if not is_beside:
            self._inner.append(0.0)
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            if is_beside:
                with self._lock:
                    self._beside[stage] = self._beside.get(stage, 0.0) + seconds
            else:
                self._count({stage: 1.0}, seconds)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """The block waits for threads that work beside: its time is that of what they do."""
        started = time.perf_counter()
        self._inner.append(0.0)
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            with self._lock:
                beside, self._beside = self._beside, {}
            total = sum(beside.values())
            self._count({stage: spent / total for stage, spent in beside.items()} if total else {}, seconds)

    def add(self, seconds: dict[str, float]) -> None:
        """Seconds that were measured elsewhere, within the stage under way where there is one."""
        with self._lock:
            for stage, spent in seconds.items():
                self._seconds[stage] = self._seconds.get(stage, 0.0) + spent
        if self._inner:
            self._inner[-1] += sum(seconds.values())

    def _count(self, shares: dict[str, float], seconds: float) -> None:
        own = max(seconds - self._inner.pop(), 0.0)
        if self._inner:
            self._inner[-1] += seconds
        with self._lock:
            for stage, share in shares.items():
                self._seconds[stage] = self._seconds.get(stage, 0.0) + own * share

    def totals(self) -> dict[str, float]:
        """Seconds by stage since the start, `other` among them; from any thread."""
        with self._lock:
            seconds = dict(self._seconds)
        passed = time.perf_counter() - self._began
        seconds[OTHER] = max(passed - sum(seconds.values()), 0.0)
        return seconds

    def take(self) -> dict[str, float]:
        """Seconds by stage since it was taken last."""
        totals, before = self.totals(), self._marked
        self._marked = totals
        return {stage: max(spent - before.get(stage, 0.0), 0.0) for stage, spent in totals.items()}

    def log(self, stages: dict[str, float], pass_number: int, batch: int) -> None:
        """One line with all stages, where that is wanted."""
        if self._is_logged:
            words = " ".join(f"{name}={value:.3f}" for name, value in stages.items())
            logger.info("stages pass=%d batch=%d seconds: %s", pass_number, batch, words)
