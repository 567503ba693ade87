"""Connections to hosts with the ssh of the system: one to each, shared by everything that is done there.

No password is ever asked for; whether a host's key is trusted is what the user's ssh configuration says.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from clickmill.errors import StateError
from clickmill.launch.failure import told_error
from clickmill.launch.hosts import HostsConfig, split_host
from clickmill.launch.process import Process
from clickmill.launch.role import RoleCommand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_POLL_S = 0.05
_ALIVE_S, _ALIVE_COUNT = 5, 3
"""A connection that answers nothing for so long, so often, is closed."""


class Host:
    """One machine; `name` is what it is known by, `control` the folder for its socket."""

    def __init__(self, config: HostsConfig, index: int, control: Path) -> None:
        user, address = split_host(config.hosts[index])
        self.index = index
        self.name = address.host
        self._timeout_s = config.connect_timeout_s
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": str(config.connect_timeout_s),
            "ServerAliveInterval": str(_ALIVE_S),
            "ServerAliveCountMax": str(_ALIVE_COUNT),
            "ControlPath": str(control / str(index)),
            "ControlPersist": "no",
        }
        way = ["-F", config.ssh_config] if config.ssh_config else []
        if user is not None:
            way += ["-l", user]
        if address.port:
            way += ["-p", str(address.port)]
        self._by_hand = shlex.join(["ssh", *way, self.name, "true"])
        """What a person can try."""
        self._argv = ["ssh", "-T", *way]
        for key, value in options.items():
            self._argv += ["-o", f"{key}={value}"]
        self._master: _Master | None = None

    async def connect(self) -> None:
        """Open the connection. Raises StateError with the words of ssh."""
        self._master = await _Master.start(
            (*self._argv, "-o", "ControlMaster=yes", "-N", "--", self.name), self.name
        )
        loop = asyncio.get_running_loop()
        # ssh has a deadline of its own for the connection; ours is for the rest of what it does.
        end = loop.time() + 2 * self._timeout_s
        while not await self._is_connected():
            if self._master.has_ended or loop.time() >= end:
                raise StateError(
                    f"cannot connect to `{self.name}`: {self._master.words or 'it does not answer'}",
                    hint=f"`{self._by_hand}` must work without a password and with a known host key",
                )
            await asyncio.sleep(_POLL_S)

    async def run(self, command: str, *, stdin: IO[bytes] | bytes | None = None) -> bytes:
        """Output of a shell command on the host. Raises StateError with its words where it fails."""
        given = stdin if isinstance(stdin, bytes) else None
        source: IO[bytes] | int = asyncio.subprocess.DEVNULL
        if stdin is not None:
            source = asyncio.subprocess.PIPE if isinstance(stdin, bytes) else stdin
        process = await asyncio.create_subprocess_exec(
            *self.argv(command),
            stdin=source,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            process_group=0,
        )
        try:
            output, words = await process.communicate(given)
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise
        if process.returncode != 0:
            lines = words.decode(errors="replace").strip().splitlines()
            told = told_error(lines[-1]) if lines else None
            last = told["message"] if told else " ".join(lines[-3:])
            raise StateError(f"`{self.name}`: {last or f'exit code {process.returncode}'}")
        return output

    def argv(self, command: str) -> tuple[str, ...]:
        """What runs a shell command on the host, over the connection that is open."""
        remote = f"exec sh -c {shlex.quote(command)}"
        return (*self._argv, "-o", "ControlMaster=no", "--", self.name, remote)

    async def close(self) -> None:
        """Close the connection and with it all that runs over it."""
        if self._master is not None:
            await self._master.end()
            self._master = None

    async def _is_connected(self) -> bool:
        check = await asyncio.create_subprocess_exec(
            *self._argv, "-O", "check", "--", self.name,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        return await check.wait() == 0


@dataclass
class _Master:
    """The process that holds the connection of one host."""

    process: Process
    life: asyncio.Task[int]
    lines: list[str]

    @classmethod
    async def start(cls, argv: tuple[str, ...], name: str) -> _Master:
        lines: list[str] = []
        process = await Process.start(
            RoleCommand(f"ssh {name}", argv),
            lambda _line: None,
            lambda line: lines.append(line.decode(errors="replace").strip()),
        )
        return cls(process, asyncio.create_task(process.wait()), lines)

    @property
    def has_ended(self) -> bool:
        return self.life.done()

    @property
    def words(self) -> str:
        return "; ".join(line for line in self.lines if line)

    async def end(self) -> None:
        self.process.ask_to_end()
        await self.life


def in_folder(folder: str, environment: Mapping[str, str], argv: Sequence[str]) -> str:
    """A shell command that becomes `argv`, in a folder and with more variables."""
    variables = [f"{key}={value}" for key, value in environment.items()]
    command = shlex.join(["env", *variables, *argv] if variables else argv)
    return f"cd {quote_path(folder)} && exec {command}"


def quote_path(path: str) -> str:
    """A path for the shell of a host; one that starts with `~/` lies in the user's home there."""
    return f'"$HOME"/{shlex.quote(path[2:])}' if path.startswith("~/") else shlex.quote(path)
