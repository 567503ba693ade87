"""The progress of a trainer that another process started: told in JSON lines on stdout, shown by the other.

    {"progress": {"pass": 0, "passes": 2, "samples": 12000, "bytes": 9000, "total_bytes": 81000, "words": ..}}

`samples` and `bytes` are what this trainer itself has done of the pass; who shows them adds them up.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from clickmill.train.observer import Interval, Observer, RunStart

if TYPE_CHECKING:
    from typing import Any, TextIO

_INTERVAL_S = 0.5
"""Between two lines at least; what matters is told at once."""


class ToldProgress(Observer):
    """Writes what it hears as lines for the process that started this one."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._state: dict[str, Any] = {"pass": 0, "passes": 1, "samples": 0, "bytes": 0, "total_bytes": 0}
        self._state["words"] = ""
        self._told_at = float("-inf")

    def run_start(self, event: RunStart) -> None:
        self._state["passes"] = event.passes

    def pass_start(self, pass_number: int, total_bytes: int) -> None:
        self._state |= {"pass": pass_number, "samples": 0, "bytes": 0, "total_bytes": total_bytes}
        self._tell()

    def advance(self, samples: int, bytes_done: int) -> None:
        self._state["samples"] += samples
        self._state["bytes"] = bytes_done
        if time.monotonic() - self._told_at >= _INTERVAL_S:
            self._tell()

    def interval(self, event: Interval) -> None:
        shown = ("auc", "batch_auc") if "auc" in event.metrics else ("rmse",)
        metrics = [f"{name} {event.metrics[name]:.4f}" for name in shown if name in event.metrics]
        self._state["words"] = "  ".join([f"loss {event.loss:.4f}", *metrics])

    def close(self) -> None:
        self._tell()

    def _tell(self) -> None:
        self._told_at = time.monotonic()
        self._stream.write(json.dumps({"progress": self._state}) + "\n")
        self._stream.flush()


class TotalProgress:
    """What all trainers together have done of the newest pass."""

    def __init__(self) -> None:
        self.pass_number = 0
        self.passes = 1
        self.words = ""
        self.total_bytes = 0
        self._done: dict[str, tuple[int, int]] = {}

    def add(self, name: str, told: Any) -> bool:
        """Take a line of a trainer; whether a new pass began. A line that makes no sense changes nothing."""
        try:
            number, samples, num_bytes = int(told["pass"]), int(told["samples"]), int(told["bytes"])
            passes, total = int(told["passes"]), int(told["total_bytes"])
        except (KeyError, TypeError, ValueError):
            return False
        if number < self.pass_number:
            return False  # a slow trainer's last words of the pass before
        is_new = number > self.pass_number or not self._done
        if is_new:
            self._done.clear()
        self.pass_number, self.passes = number, max(passes, number + 1)
        self.total_bytes = total
        self._done[name] = (samples, num_bytes)
        self.words = str(told.get("words") or self.words)
        return is_new

    @property
    def samples(self) -> int:
        return sum(samples for samples, _ in self._done.values())

    @property
    def num_bytes(self) -> int:
        return sum(num_bytes for _, num_bytes in self._done.values())
