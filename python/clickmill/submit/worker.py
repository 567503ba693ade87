"""Whether this process is part of a job already: then it trains, and submits nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ConfigError, Problem
from clickmill.launch.mpi import read_rank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.config import Config

ROLE = "PADDLE_PADDLEREC_ROLE"
CLUSTER_TYPE = "PADDLEREC_CLUSTER_TYPE"


def is_worker(environ: Mapping[str, str]) -> bool:
    """Whether the environment says so. Raises ConfigError where it says what means nothing."""
    role = environ.get(ROLE, "").strip().upper()
    if role not in {"", "MASTER", "WORKER"}:
        message = f"must be MASTER, which submits, or WORKER, which trains, not `{environ[ROLE]}`"
        raise ConfigError.of([Problem(message, key=ROLE)])
    return role == "WORKER"


def worker_overrides(config: Config, environ: Mapping[str, str]) -> list[str]:
    """On an MPI cluster of PaddleCloud each node has a server and a trainer: half of the ranks are servers.

    Unless the file names a number of servers. Nothing in a process that is no worker there.
    """
    told = [environ.get(name, "").strip().upper() for name in (ROLE, CLUSTER_TYPE)]
    rank = read_rank(environ) if told == ["WORKER", "MPI"] else None
    if rank is None:
        return []
    return [
        f"runner.{config.runner.index(runner)}.server_num={max(1, rank.size // 2)}"
        for runner in config.runners()
        if "server_num" not in runner.model_fields_set and not runner.is_collective
    ]
