"""The journals of a run: its own, and those of the trainers of a cluster."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from clickmill.train.cluster.meter import JOURNALS
from clickmill.train.journal import Event, read_journal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def read_trainers(folder: Path) -> dict[str, list[Event]]:
    """Journals of the trainers of a cluster, by name; those of several lives of one stand together.

    Where trainers of one name were there at the same time, their numbers tell them apart.
    """
    lives: dict[str, list[list[Event]]] = {}
    for path in sorted((folder / JOURNALS).glob("*.jsonl"), key=lambda path: int(path.stem)):
        events = read_journal(path)
        if events and events[0]["event"] == "trainer_start":
            lives.setdefault(events[0]["name"], []).append(events)
    found: dict[str, list[Event]] = {}
    for name, own in lives.items():
        is_shared = _overlap(own)
        for events in own:
            key = f"{name}, number {events[0]['number']}" if is_shared else name
            found.setdefault(key, []).extend(events)
    return found


def _overlap(lives: Iterable[list[Event]]) -> bool:
    """Whether one of them began before another had ended."""
    spans = sorted((events[0]["time"], events[-1]["time"]) for events in lives)
    return any(begin < end for (_, end), (begin, _) in itertools.pairwise(spans))
