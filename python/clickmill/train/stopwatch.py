"""Where the time of a run goes: `debug: true` logs it for every stage of the pipeline."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger("clickmill.train")


class Stopwatch:
    """Adds up seconds by name, over all threads: stages of several workers may add to more than passed."""

    def __init__(self, *, is_running: bool = True) -> None:
        """One that is not running costs next to nothing and says nothing."""
        self._is_running = is_running
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Count the time of the block."""
        if not self._is_running:
            yield
            return
        started = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            with self._lock:
                self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def log(self, pass_number: int, batch: int) -> None:
        """One line with all names, and start again from zero."""
        if not self._is_running:
            return
        with self._lock:
            seconds, self._seconds = self._seconds, {}
        words = " ".join(f"{name}={value:.3f}" for name, value in seconds.items())
        logger.info("stages pass=%d batch=%d seconds: %s", pass_number, batch, words)
