"""Whether there was data for all trainers of a run: a unit has one trainer at a time, the others are idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Sharing:
    """How the data went round."""

    units: int
    """Of the pass that had most; 0 where nobody has counted them."""
    trainers: int
    """That were there at the same time, at most."""
    idle_seconds: float
    """Of all trainers together, while more of them were there than units."""

    @property
    def is_short(self) -> bool:
        """There was less than one unit for each trainer."""
        return 0 < self.units < self.trainers

    def words(self) -> str:
        """What there was too little of, and what helps; nothing where there was enough."""
        if not self.is_short:
            return ""
        return (
            f"There is too little data to share: {self.units} {'unit' if self.units == 1 else 'units'} for "
            f"{self.trainers} trainers, so that some have nothing to do, which is not counted here. Give the "
            "data in more files (a compressed one is never cut), make `cluster.lease_bytes` smaller, or "
            "start fewer trainers."
        )


def find_sharing(journals: Iterable[Iterable[Mapping[str, Any]]]) -> Sharing:
    """From the journals of all trainers of a run."""
    changes: list[tuple[float, int]] = []
    units = 0
    for events in journals:
        for begin, end, own_units in _lives(events):
            changes += [(begin, 1), (end, -1)]
            units = max(units, own_units)
    here, most, idle, last = 0, 0, 0.0, 0.0
    for moment, change in sorted(changes):
        idle += max(here - units, 0) * (moment - last)
        here, last = here + change, moment
        most = max(most, here)
    return Sharing(units, most, idle if units else 0.0)


def _lives(events: Iterable[Mapping[str, Any]]) -> list[tuple[float, float, int]]:
    """From when to when it was a member, and how many units there were, of each life of a trainer."""
    lives: list[tuple[float, float, int]] = []
    for event in events:
        if event["event"] == "trainer_start":
            lives.append((event["time"], event["time"], event.get("units", 0)))
        elif lives and "time" in event:
            begin, _, units = lives[-1]
            lives[-1] = (begin, event["time"], units)
    return lives
