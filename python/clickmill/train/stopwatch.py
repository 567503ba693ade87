"""Where the time of a run goes: `debug: true` logs it for every stage of the pipeline."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickmill.train.turns import Stages

Pulled = TypeVar("Pulled")
Computed = TypeVar("Computed")
T = TypeVar("T")

logger = logging.getLogger("clickmill.train")


class Stopwatch:
    """Adds up seconds by name, over all threads: stages of several workers may add to more than passed."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Count the time of the block."""
        started = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            with self._lock:
                self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def timed(self, name: str, call: Callable[[], T]) -> Callable[[], T]:
        """`call`, with its time counted."""

        def measured() -> T:
            with self.measure(name):
                return call()

        return measured

    def log(self, pass_number: int, batch: int) -> None:
        """One line with all names, and start again from zero."""
        with self._lock:
            seconds, self._seconds = self._seconds, {}
        words = " ".join(f"{name}={value:.3f}" for name, value in seconds.items())
        logger.info("stages pass=%d batch=%d seconds: %s", pass_number, batch, words)


class TimedStages(Generic[Pulled, Computed]):
    """Stages with the time of each counted."""

    def __init__(self, stages: Stages[Pulled, Computed], stopwatch: Stopwatch) -> None:
        self._stages = stages
        self._stopwatch = stopwatch

    def pull(self, worker: int) -> Pulled | None:
        with self._stopwatch.measure("pull"):
            return self._stages.pull(worker)

    def compute(self, worker: int, pulled: Pulled) -> Computed:
        with self._stopwatch.measure("compute"):
            return self._stages.compute(worker, pulled)

    def commit(self, worker: int, pulled: Pulled, computed: Computed) -> None:
        with self._stopwatch.measure("commit"):
            self._stages.commit(worker, pulled, computed)
