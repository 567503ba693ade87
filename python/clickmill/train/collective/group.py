"""The group of ranks that train together, from meeting to parting."""

from __future__ import annotations

import datetime
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not in its stubs

from clickmill.errors import ConfigError, MemberLostError
from clickmill.train.collective.channel import Channel
from clickmill.train.members import Members

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from clickmill.config import RunnerConfig
    from clickmill.train.collective.seat import Seat


@dataclass(frozen=True)
class Group:
    """This process's place in the group, and its lines to the others."""

    members: Members
    rows: Channel
    """For signs, rows and everything at fences; used by one thread at a time."""
    dense: Channel
    """For dense gradients and scores, which travel beside the rows."""
    device: Channel | None
    """For dense gradients in the memory of cards."""

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        return self.members.rank

    @property
    def world(self) -> int:
        """Processes in all."""
        return self.members.world


@contextmanager
def joined(runner: RunnerConfig, seat: Seat, card: torch.device | None = None) -> Iterator[Group]:
    """Meet the others, and part when all are done.

    Every wait has the deadline `wait_for_members_s`; a rank that has died is noticed at once by those that
    have a connection to it.
    """
    rank, world = seat.rank, seat.world
    host, port = _parsed(seat.endpoint)
    seconds = runner.cluster.wait_for_members_s
    timeout = datetime.timedelta(seconds=seconds)
    try:
        store = TCPStore(host, port, world, rank == 0, timeout=timeout)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timeout)
    except (RuntimeError, ValueError) as error:
        raise MemberLostError(
            f"rank {rank} of {world} did not meet the others at `{seat.endpoint}` in {seconds:g} s: "
            f"{str(error).splitlines()[0]}",
            hint="are all ranks started, with the same endpoint, and is its port free?",
        ) from error
    try:

        def channel(backend: str, device: torch.device | None = None) -> Channel:
            group = dist.new_group(backend=backend, timeout=timeout, device_id=device)
            assert isinstance(group, dist.ProcessGroup)
            return Channel(group, rank, world, seconds)

        members = Members(rank, world, runner.cluster.collective_tables == "sharded", seat.local_rank)
        group = Group(
            members,
            channel("gloo"),
            channel("gloo"),
            None if card is None else channel("nccl", card),
        )
        yield group
        # Nobody closes a line that another one still listens to.
        group.rows.gather_numbers([0])
    finally:
        dist.destroy_process_group()


def _parsed(endpoint: str) -> tuple[str, int]:
    host, colon, port = endpoint.rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise ConfigError(f"`{endpoint}` is not an endpoint of the form `host:port`")
    return host, int(port)
