"""Why a run is not faster: the stage that its time goes to.

A trainer's time is that of the thread that trains (`stopwatch`); a run's is the sum over its trainers. The
stage with the largest share of it bounds the run: made faster, it makes the run faster, and nothing else does
as much. A trainer that waits for others is bound by them; they are those that wait least. Time in which there
was no data for a trainer (`sharing`) is none of the run's: nothing of it would be faster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickmill.train.sharing import Sharing, find_sharing
from clickmill.train.stopwatch import OTHER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STAGES: dict[str, str] = {
    "read": "reading and parsing samples",
    "dedup": "finding the rows of a batch",
    "pull": "getting rows and dense parameters",
    "compute": "forward and backward",
    "push": "sending and applying gradients",
    "wait": "waiting for other trainers, fences and work",
    "reload": "waiting for servers that were lost to come back, or to take buckets",
}
"""Stages that can bound a run, and what is done in them."""

_PARTS = {
    "locate": "dedup",
    "pool": "compute",
    "update_dense": "push",
    "update_rows": "push",
    "sum_dense": "push",
    "gather_rows": "push",
}
"""Names of parts of stages."""


@dataclass
class Stages:
    """Seconds by stage."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, seconds: Mapping[str, float]) -> None:
        """More of them; parts of stages count for the stage."""
        for name, spent in seconds.items():
            stage = _PARTS.get(name, name)
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent

    @property
    def shares(self) -> dict[str, float]:
        """Of all time, largest first; the stages first that can bound a run."""
        total = sum(self.seconds.values())
        if total <= 0.0:
            return {}
        shares = {stage: self.seconds.get(stage, 0.0) / total for stage in STAGES}
        others = {name: spent / total for name, spent in self.seconds.items() if name not in STAGES}
        return dict(_sorted(shares) + _sorted(others))

    @property
    def bound(self) -> str | None:
        """The stage that most of the time goes to; None where nothing was measured."""
        found = {stage: spent for stage, spent in self.seconds.items() if stage in STAGES and spent > 0.0}
        return max(found, key=lambda stage: found[stage]) if found else None


def _sorted(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda item: -item[1])


@dataclass(frozen=True)
class Bound:
    """What bounds a run, and each of its trainers."""

    run: Stages
    trainers: dict[str, Stages]
    sharing: Sharing

    @property
    def awaited(self) -> str | None:
        """The trainer that the others wait for, where waiting bounds the run and not that trainer."""
        if self.run.bound != "wait" or len(self.trainers) < 2:
            return None
        least = min(self.trainers, key=lambda name: self.trainers[name].shares.get("wait", 0.0))
        return None if self.trainers[least].bound in {"wait", None} else least

    def words(self) -> str:
        """One sentence for people."""
        stage = self.run.bound
        if stage is None:
            return "Nobody has measured where the time went."
        text = f"Bound by {stage}: {self.run.shares[stage]:.0%} of the time goes to {STAGES[stage]}."
        if self.awaited is not None:
            slow = self.trainers[self.awaited]
            text += f" The others wait for {self.awaited}, whose time goes to {slow.bound}."
        elif stage == "wait" and len(self.trainers) > 1:
            text += " No trainer holds the others up: all of them wait, for fences or for work."
        return f"{text} {self.sharing.words()}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "bound": self.run.bound,
            "shares": self.run.shares,
            "seconds": self.run.seconds,
            "awaited": self.awaited,
            "has_too_little_data": self.sharing.is_short,
            "units": self.sharing.units,
            "idle_seconds": self.sharing.idle_seconds,
            "late_seconds": self.sharing.late_seconds,
            "trainers": {
                name: {"bound": stages.bound, "shares": stages.shares, "seconds": stages.seconds}
                for name, stages in self.trainers.items()
            },
        }


def find_bound(journals: Mapping[str, Sequence[Mapping[str, Any]]]) -> Bound:
    """From the journals of all trainers of a run, by name."""
    run = Stages()
    trainers = {}
    for name, events in journals.items():
        stages = Stages()
        for event in events:
            stages.add(event.get("stages") or {})
        if stages.seconds:
            trainers[name] = stages
            run.add(stages.seconds)
    sharing = find_sharing(journals)
    idle = sharing.idle_seconds
    if not sharing.is_short:
        idle = sum(
            trainers[name].seconds.get("wait", 0.0) for name in sharing.late_seconds if name in trainers
        )
    if idle > 0.0:
        run.seconds["wait"] = max(run.seconds.get("wait", 0.0) - idle, 0.0)
    return Bound(run, trainers, sharing)


def shares_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """Shares by stage of what a stopwatch has measured, without those of nothing."""
    stages = Stages()
    stages.add(seconds)
    return {stage: share for stage, share in stages.shares.items() if share > 0.0 and stage != OTHER}
