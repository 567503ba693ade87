"""Whether there was data for all trainers of a run: a unit has one trainer at a time, the others are idle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Sharing:
    """How the data went round."""

    units: int
    """Of the pass that had most; 0 where nobody has counted them."""
    trainers: int
    """That were there at the same time, at most."""
    idle_seconds: float
    """Of all trainers together, while more of them were there than units."""
    late_seconds: dict[str, float] = field(default_factory=dict)
    """Trainers that have trained on nothing while others have, and how long after the first each came."""

    @property
    def is_short(self) -> bool:
        """There was less than one unit for each trainer."""
        return 0 < self.units < self.trainers

    def words(self) -> str:
        """What there was too little of, and what helps; nothing where there was enough."""
        if not self.is_short:
            return " ".join(_late_words(name, late) for name, late in self.late_seconds.items())
        return (
            f"There is too little data to share: {self.units} {'unit' if self.units == 1 else 'units'} for "
            f"{self.trainers} trainers, so that some have nothing to do, which is not counted here. Give the "
            "data in more files (a compressed one is never cut), make `cluster.lease_bytes` smaller, or "
            "start fewer trainers."
        )


def _late_words(name: str, late: float) -> str:
    return (
        f"{name} has trained on nothing, which is not counted here: it came {late:.1f} s after the first "
        "trainer, and the others had all units of data."
    )


def find_sharing(journals: Mapping[str, Sequence[Mapping[str, Any]]]) -> Sharing:
    """From the journals of all trainers of a run, by name."""
    changes: list[tuple[float, int]] = []
    units = 0
    for events in journals.values():
        for begin, end, own_units in _lives(events):
            changes += [(begin, 1), (end, -1)]
            units = max(units, own_units)
    here, most, idle, last = 0, 0, 0.0, 0.0
    for moment, change in sorted(changes):
        idle += max(here - units, 0) * (moment - last)
        here, last = here + change, moment
        most = max(most, here)
    return Sharing(units, most, idle if units else 0.0, _late(journals))


def _late(journals: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, float]:
    begins = {name: lives[0][0] for name, events in journals.items() if (lives := _lives(events))}
    batches = {name: _batches(events) for name, events in journals.items()}
    if not any(batches.values()):
        return {}
    first = min(begins.values(), default=0.0)
    return {name: begin - first for name, begin in begins.items() if batches[name] == 0}


def _batches(events: Iterable[Mapping[str, Any]]) -> int | None:
    """That a trainer has trained on; None where it has not counted them."""
    return max((event["batches"] for event in events if event.get("batches") is not None), default=None)


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
