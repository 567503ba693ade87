"""A process of a role: started, listened to, ended. It dies with us, however we die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.errors import StateError
from clickmill.launch.lines import lines_of
from clickmill.launch.role import PROGRESS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.launch.role import RoleCommand

HEARTBEAT_S = 3.0
"""Seconds between signs of life to a tethered process."""

_BOUND = str(Path(__file__).with_name("bound.py"))


class Process:
    """One life of a role."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        command: RoleCommand,
        on_output: Callable[[bytes], None],
        on_words: Callable[[bytes], None],
    ) -> None:
        self._process = process
        self._command = command
        assert process.stdout is not None
        assert process.stderr is not None
        self._relays = [
            asyncio.create_task(_relay(process.stdout, on_output)),
            asyncio.create_task(_relay(process.stderr, on_words)),
        ]
        self._heart = asyncio.create_task(self._beat()) if command.is_tethered else None

    @classmethod
    async def start(
        cls, command: RoleCommand, on_output: Callable[[bytes], None], on_words: Callable[[bytes], None]
    ) -> Process:
        """Start it, in a group of its own: Ctrl-C is for us, who end all processes in order."""
        environ = {**os.environ, "PYTHONUNBUFFERED": "1", PROGRESS_VARIABLE: "1", **command.env}
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", _BOUND, str(os.getpid()), *command.argv,
                stdin=asyncio.subprocess.PIPE if command.is_tethered else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environ,
                process_group=0,
            )  # fmt: skip
        except OSError as error:
            raise StateError(f"cannot start {command.name}: {error.strerror or error}") from error
        return cls(process, command, on_output, on_words)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        """Its exit code, negative for a signal, when all it said has been heard."""
        await _exit_of(self._process.pid)
        # What it started itself must not outlive it, nor hold its streams open: asyncio waits for those, too.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = await self._process.wait()
        await asyncio.gather(*self._relays)
        if self._heart is not None:
            self._heart.cancel()
            self._close_stdin()
        return code

    def ask_to_end(self) -> None:
        """It may finish what it must not leave half done."""
        if self._heart is not None:
            self._heart.cancel()
            self._close_stdin()
        else:
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it now."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _beat(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        # A process that has ended is found out by `wait`, which has its exit code.
        with contextlib.suppress(ConnectionError):
            while True:
                stdin.write(b"\n")
                await stdin.drain()
                await asyncio.sleep(HEARTBEAT_S)

    def _close_stdin(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.close()


async def _relay(stream: asyncio.StreamReader, take: Callable[[bytes], None]) -> None:
    async for line in lines_of(stream):
        take(line)


async def _exit_of(pid: int) -> None:
    """Return when a child has ended, whatever holds its streams."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, has_ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, has_ended.set)
    try:
        await has_ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
