"""Who takes part in a run, and what each of them holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Members:
    """Process `rank` of `world` that train one model together."""

    rank: int = 0
    world: int = 1
    has_sharded_rows: bool = False
    """Each row is held by one member; otherwise by all of them."""
    local_rank: int = 0
    """Number among the members of one host."""

    @property
    def is_writer(self) -> bool:
        """Whether this one writes and tells what concerns all."""
        return self.rank == 0

    @property
    def data_share(self) -> tuple[int, int] | None:
        """Index and count of those who read the samples between them."""
        return (self.rank, self.world) if self.world > 1 else None

    @property
    def row_share(self) -> tuple[int, int] | None:
        """Index and count of those who hold the rows between them."""
        return (self.rank, self.world) if self.has_sharded_rows else None


ALONE = Members()
