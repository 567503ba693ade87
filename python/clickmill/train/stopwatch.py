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
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger("clickmill.train")

OTHER = "other"
"""Time of no stage."""
LOST = "lost"
"""Time of steps that came to nothing; what they waited for is known only when the run goes on (`settle`)."""


@dataclass
class UnderWay:
    """A stage that has begun; None: a wait for others."""

    stage: str | None
    """May be changed by the block, which may find out only then what its time was spent on."""
    started: float
    inner: float = 0.0
    """Seconds of stages inside of it, which are not its own."""


class Stopwatch:
    """Adds up seconds by stage; made by the thread that trains."""

    def __init__(self, *, is_logged: bool = False) -> None:
        """`is_logged`: `log` writes a line, as `debug: true` asks for."""
        self._is_logged = is_logged
        self._owner = threading.get_ident()
        self._began = time.perf_counter()
        self._seconds: dict[str, float] = {}
        self._beside: dict[str, float] = {}
        self._under_way: list[UnderWay] = []
        """The innermost last."""
        self._marked: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def measure(self, stage: str, *, failed: str | None = None) -> Iterator[UnderWay]:
        """Count the time of the block without that of stages inside of it, as `failed` where it raises."""
        if threading.get_ident() != self._owner:
            own = UnderWay(stage, time.perf_counter())
            try:
                yield own
            finally:
                seconds = time.perf_counter() - own.started
                with self._lock:
                    self._beside[stage] = self._beside.get(stage, 0.0) + seconds
            return
        under_way = self._begin(stage)
        try:
            yield under_way
        except BaseException:
            under_way.stage = failed or under_way.stage
            raise
        finally:
            self._end({under_way.stage or stage: 1.0})

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """The block waits for threads that work beside: its time is that of what they do."""
        self._begin(None)
        try:
            yield
        finally:
            with self._lock:
                beside, self._beside = self._beside, {}
            total = sum(beside.values())
            self._end({stage: spent / total for stage, spent in beside.items()} if total else {})

    def add(self, seconds: dict[str, float]) -> None:
        """Seconds that were measured elsewhere, within the stage under way where there is one."""
        with self._lock:
            for stage, spent in seconds.items():
                self._seconds[stage] = self._seconds.get(stage, 0.0) + spent
            if self._under_way:
                self._under_way[-1].inner += sum(seconds.values())

    def settle(self, stage: str) -> None:
        """What was lost was spent on `stage`."""
        with self._lock:
            lost = self._seconds.pop(LOST, 0.0)
            self._seconds[stage] = self._seconds.get(stage, 0.0) + lost

    def _begin(self, stage: str | None) -> UnderWay:
        with self._lock:
            self._under_way.append(UnderWay(stage, time.perf_counter()))
            return self._under_way[-1]

    def _end(self, shares: dict[str, float]) -> None:
        with self._lock:
            ended = self._under_way.pop()
            seconds = time.perf_counter() - ended.started
            if self._under_way:
                self._under_way[-1].inner += seconds
            for stage, share in shares.items():
                own = max(seconds - ended.inner, 0.0) * share
                self._seconds[stage] = self._seconds.get(stage, 0.0) + own

    def totals(self) -> dict[str, float]:
        """Seconds by stage since the start, with what is under way, and `other`; from any thread."""
        with self._lock:
            seconds, now, inside = dict(self._seconds), time.perf_counter(), 0.0
            for each in reversed(self._under_way):
                passed = now - each.started
                if each.stage is not None:
                    own = max(passed - each.inner - inside, 0.0)
                    seconds[each.stage] = seconds.get(each.stage, 0.0) + own
                inside = passed
        passed = now - self._began
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
