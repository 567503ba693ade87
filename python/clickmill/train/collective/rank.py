"""One rank from start to end, whoever started it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.train.collective.group import joined
from clickmill.train.collective.run import CollectiveRun
from clickmill.train.gpu.cards import card_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.train.collective.seat import Seat
    from clickmill.train.observer import Observer


def run_rank(
    config: Config,
    runner: RunnerConfig,
    phase: PhaseConfig,
    seat: Seat,
    *,
    resume: bool = False,
    observers: Sequence[Observer] = (),
) -> dict[str, Any]:
    """Train a phase as one rank of a group; rank 0 gives the summary of the run.

    Raises MemberLostError where another rank ends too early.
    """
    with joined(runner, seat, card_of(runner, seat.local_rank)) as group:
        return CollectiveRun(config, runner, phase, group, observers).train(resume=resume)
