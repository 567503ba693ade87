"""The journals of a run: its own, and those of the trainers of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.train.cluster.meter import JOURNALS
from clickmill.train.journal import Event, read_journal

if TYPE_CHECKING:
    from pathlib import Path


def read_trainers(folder: Path) -> dict[str, list[Event]]:
    """Journals of the trainers of a cluster, by name; those of several lives of one stand together."""
    found: dict[str, list[Event]] = {}
    for path in sorted((folder / JOURNALS).glob("*.jsonl")):
        events = read_journal(path)
        start = next((event for event in events if event["event"] == "trainer_start"), None)
        if start is not None:
            found.setdefault(f"{start['name']} ({start['number']})", []).extend(events)
    return found
