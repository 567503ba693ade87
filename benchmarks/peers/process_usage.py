"""What processes have used, as the kernel tells it; needs Linux."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Places in what follows the name in /proc/<id>/stat: of the process itself, then of children that have ended.
PARENT = 1
OWN_TICKS = slice(11, 13)
ALL_TICKS = slice(11, 15)


@dataclass(frozen=True)
class Usage:
    """Of one process since its start."""

    cpu_s: float
    all_cpu_s: float
    """With that of children that have ended."""
    peak_rss_mb: float


def usage(process_id: int) -> Usage:
    fields, ticks_per_s = stat(process_id), os.sysconf("SC_CLK_TCK")
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    # A process that is ending has no memory any more.
    peak_kb = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
    own, everything = (sum(map(int, fields[part])) for part in (OWN_TICKS, ALL_TICKS))
    return Usage(own / ticks_per_s, everything / ticks_per_s, peak_kb / 1024)


def stat(process_id: int) -> list[str]:
    # The name in brackets may hold blanks and brackets; what follows the last bracket does not.
    return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()


class TreeUsage:
    """Of a process and all below it, as far as they were alive when it was looked at."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[int, Usage] = {}
        self._times: list[float] = []
        self._cpu_s: list[float] = []

    def look(self) -> None:
        for process_id in descendants(self._root):
            try:
                found = usage(process_id)
            except (FileNotFoundError, ProcessLookupError):
                continue  # ended since it was listed
            if found.peak_rss_mb:
                self._seen[process_id] = found
        self._times.append(time.time())
        self._cpu_s.append(sum(each.cpu_s for each in self._seen.values()))

    def cpu_seconds(self, start: float, end: float) -> float:
        """Between two times of `time.time`, from the looks before and after each."""
        before, after = np.interp([start, end], self._times, self._cpu_s)
        return float(after - before)

    @property
    def peak_rss_mb(self) -> float:
        """The sum of the peaks, which need not have been at the same time."""
        return sum(each.peak_rss_mb for each in self._seen.values())


def descendants(root: int) -> set[int]:
    """`root` and every process below it."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                children.setdefault(int(stat(int(folder.name))[PARENT]), []).append(int(folder.name))
            except (FileNotFoundError, ProcessLookupError):
                continue  # ended since it was listed
    found, waiting = set(), [root]
    while waiting:
        process_id = waiting.pop()
        found.add(process_id)
        waiting += children.get(process_id, [])
    return found
