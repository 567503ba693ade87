"""What a role starts itself ends with it."""

from __future__ import annotations

import asyncio

from clickmill.launch.process import Process
from clickmill.launch.role import RoleCommand
from tests.cluster.launched import is_alive, wait_until


def test_children_of_a_role_do_not_outlive_it() -> None:
    lines: list[bytes] = []

    async def run() -> int:
        command = RoleCommand("trainer 0", ("sh", "-c", "sleep 1000 & echo $!; exit 3"))
        process = await Process.start(command, lines.append, lines.append)
        return await asyncio.wait_for(process.wait(), 60)

    assert asyncio.run(run()) == 3
    (child,) = map(int, lines)
    wait_until(lambda: not is_alive(child))
