"""The place of a process among the ranks of a run."""

from __future__ import annotations

from dataclasses import dataclass

from clickmill.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Seat:
    """Rank `rank` of `world`, who meet at `endpoint`, where rank 0 listens."""

    rank: int
    world: int
    endpoint: str
    local_rank: int = 0
    """Number among the ranks of its host, which share that host's cards."""

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world:
            raise ConfigError(f"rank {self.rank} of {self.world} ranks; they count from 0")
