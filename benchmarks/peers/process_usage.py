"""What processes have used, as the kernel tells it; needs Linux."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Places in what follows the name in /proc/<id>/stat.
PARENT = 1
USER_TICKS, CHILDREN_TICKS_END = 11, 15


@dataclass(frozen=True)
class Usage:
    """Since the start of the process; the time of children counts when they have ended."""

    cpu_s: float
    peak_rss_mb: float


def usage(process_id: int) -> Usage:
    ticks = sum(int(field) for field in stat(process_id)[USER_TICKS:CHILDREN_TICKS_END])
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    # A process that is ending has no memory any more.
    peak_kb = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), peak_kb / 1024)


def stat(process_id: int) -> list[str]:
    # The name in brackets may hold blanks and brackets; what follows the last bracket does not.
    return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()


class PeakMemory:
    """Peak memory of a process and all below it: the sum of their peaks, as far as they were seen alive."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._peaks_mb: dict[int, float] = {}

    def look(self) -> None:
        for process_id in descendants(self.root):
            try:
                self._peaks_mb[process_id] = usage(process_id).peak_rss_mb
            except (FileNotFoundError, ProcessLookupError):
                continue  # ended since it was listed

    @property
    def total_mb(self) -> float:
        return sum(self._peaks_mb.values())


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
