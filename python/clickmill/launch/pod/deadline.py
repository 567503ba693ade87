"""A time by which something must have happened."""

from __future__ import annotations

import time


class Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._began = time.monotonic()

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float:
        """Never less than 0."""
        return max(0.0, self.seconds - self.waited_s)

    @property
    def is_over(self) -> bool:
        return self.left_s == 0.0

    def sooner(self, seconds: float) -> Deadline:
        """Another one, that is over by then, and never later than this one."""
        return Deadline(min(seconds, self.left_s))
