"""Which rank of a collective run this process is, by its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.launch.address import Address
from clickmill.launch.roles import ROLE, WORKER_ADDRESSES, WORKER_HOSTS, Role, read_role
from clickmill.launch.variables import Variables
from clickmill.train.collective.seat import Seat

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_seat(environ: Mapping[str, str]) -> Seat | None:
    """The seat that `environ` names; None where it names none.

    First what torch.distributed reads (`RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`, `LOCAL_RANK`): our
    own launchers set it, whatever names they were told in. Then the names of `read_role`, for which a list of
    workers is enough to tell that this is one of them.
    """
    variables = Variables(environ)
    if variables.name_of("RANK") is not None:
        return _torch_seat(variables)
    if variables.name_of(*ROLE, *WORKER_ADDRESSES, *WORKER_HOSTS) is None:
        return None
    is_told = variables.name_of(*ROLE) is not None
    role = read_role(environ if is_told else {**environ, ROLE[0]: "WORKER"}, is_collective=True)
    assert role is not None
    assert role.index is not None
    return Seat(role.index, len(role.workers), str(role.workers[0]), local_rank(role))


def local_rank(role: Role) -> int:
    """Number of a worker among those of its host."""
    assert role.index is not None
    host = role.workers[role.index].host
    return sum(worker.host == host for worker in role.workers[: role.index])


def _torch_seat(variables: Variables) -> Seat:
    rank, world = variables.count("RANK"), variables.count("WORLD_SIZE", least=1)
    host, port = variables.text("MASTER_ADDR"), variables.port("MASTER_PORT")
    for name in ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        if variables.name_of(name) is None:
            variables.wrong(name, "is not set, but `RANK` is")
    if rank is not None and world is not None and rank >= world:
        variables.wrong("RANK", f"says {rank}, but `WORLD_SIZE` says {world}; ranks count from 0")
    local = variables.count("LOCAL_RANK")
    variables.check(hint="every rank needs `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`")
    assert rank is not None
    assert world is not None
    assert host is not None
    assert port is not None
    return Seat(rank, world, str(Address(host, port)), rank if local is None else local)
