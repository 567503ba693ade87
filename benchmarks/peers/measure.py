"""What every peer measures and prints; needs NumPy alone, so that it runs in any environment."""

from __future__ import annotations

import json
import resource
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import TracebackType


def cpu_seconds() -> float:
    """User and system time of this process, its threads, and its children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


@dataclass
class Stopwatch:
    """Wall and CPU time of the block that it is the context of."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    _start: tuple[float, float] = field(default=(0.0, 0.0), repr=False)

    def __enter__(self) -> Stopwatch:
        self._start = (time.perf_counter(), cpu_seconds())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wall, cpu = self._start
        self.wall_s = time.perf_counter() - wall
        self.cpu_s = cpu_seconds() - cpu


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Exact area under the ROC curve; ties count half."""
    order = np.argsort(scores, kind="stable")
    labels, scores = labels[order] > 0.5, scores[order]
    first = np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]])
    # Every score of a run of ties gets the mean of the ranks of the run, counted from 1.
    length = np.diff(np.r_[first, len(scores)])
    rank = np.repeat(first + (length + 1) / 2, length)
    num_positive = int(labels.sum())
    num_negative = len(labels) - num_positive
    return float((rank[labels].sum() - num_positive * (num_positive + 1) / 2) / (num_positive * num_negative))


def peak_rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(samples: int, watch: Stopwatch, **more: Any) -> None:
    """The one line that the harness reads."""
    line = {
        "samples": samples,
        "wall_s": round(watch.wall_s, 4),
        "cpu_s": round(watch.cpu_s, 4),
        "samples_per_s": round(samples / watch.wall_s, 1),
        "peak_rss_mb": round(peak_rss_mb(), 1),
        **more,
    }
    print(json.dumps(line), flush=True)
