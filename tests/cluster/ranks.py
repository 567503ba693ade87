"""The ranks of a collective run, each a `clickmill train` in a process of its own."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.process import Command, command

RANKED = (
    "--set",
    "runner.0.class=cluster_train",
    "--set",
    "runner.0.fleet_mode=collective",
    "--set",
    "runner.0.cluster.wait_for_members_s=60",
)


@contextlib.contextmanager
def ranks(folder: Path, world: int, *arguments: str) -> Iterator[list[Command]]:
    """All ranks of a group, which compare their parameters after every step."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                command(
                    folder,
                    *arguments,
                    *RANKED,
                    log_name=f"rank-{rank}.log",
                    environment={
                        "RANK": str(rank),
                        "WORLD_SIZE": str(world),
                        "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": str(port),
                        "CLICKMILL_CHECK_RANKS": "1",
                    },
                )
            )
            for rank in range(world)
        ]


def run_ranks(folder: Path, world: int, *arguments: str) -> None:
    """All ranks to their end, which is a good one."""
    with ranks(folder, world, *arguments) as running:
        for each in running:
            each.succeed()
