"""A member of a run: a role over all its lives, with its log and what it told."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

from clickmill.errors import StateError
from clickmill.launch.address import Address, parse_address
from clickmill.launch.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clickmill.launch.process import Process
    from clickmill.launch.role import RoleCommand
    from clickmill.launch.screen import Screen

_MAX_WORDS = 50
"""Last lines that are kept to say why it failed."""
_MAX_OUTPUT_BYTES = 16 << 20


class Member:
    """What is known of one role of the run.

    `command` gives the process to start; it is called with the address at which an earlier life listened, so
    that a server comes back where the others look for it, and with None for the first.
    """

    def __init__(
        self,
        name: str,
        kind: Literal["server", "trainer"],
        command: Callable[[Address | None], RoleCommand],
        *,
        can_come_back: bool = True,
    ) -> None:
        self.name = name
        self.kind = kind
        self.command = command
        self.can_come_back = can_come_back
        """The others take one in that has been started again."""
        self.process: Process | None = None
        self.num_restarts = 0
        self.address: Address | None = None
        self.listens: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
        """Resolved when a server listens for the first time."""
        self.is_done = asyncio.Event()
        """It has ended well."""
        self.is_lost = False
        """It has ended because another one had."""
        self.words: deque[str] = deque(maxlen=_MAX_WORDS)
        self._output: list[bytes] = []
        self._num_output_bytes = 0
        self._log: Log | None = None
        self._screen: Screen | None = None

    @property
    def is_alive(self) -> bool:
        return self.process is not None

    def attach(self, screen: Screen, log: Path | None) -> None:
        """Where its lines go."""
        self._screen = screen
        if log is not None:
            self._log = Log(log)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def start_over(self) -> None:
        """What an earlier life has said is of no use to the next."""
        self.words.clear()
        self._output.clear()
        self._num_output_bytes = 0

    def take_words(self, line: bytes) -> None:
        """A line of its stderr."""
        text = line.decode(errors="replace")
        self.words.append(text)
        self._write_log(line)
        if self._screen is not None:
            self._screen.line(self.name, text)

    def take_output(self, line: bytes) -> None:
        """A line of its stdout: it listens, it tells its progress, or it is part of the summary."""
        told = _object(line)
        if "progress" in told:
            if self._screen is not None and isinstance(told["progress"], dict):
                self._screen.progress(self.name, told["progress"])
            return
        self._write_log(line)
        if "role" in told and "address" in told:
            self._hear_address(str(told["address"]))
            return
        self._num_output_bytes += len(line)
        if self._num_output_bytes <= _MAX_OUTPUT_BYTES:
            self._output.append(line)

    def summary(self) -> Any:
        """The JSON that it printed at its end; None where there is none."""
        try:
            return json.loads(b"\n".join(self._output))
        except ValueError:
            return None

    def _hear_address(self, text: str) -> None:
        try:
            self.address = parse_address(text)
        except ValueError as error:
            if not self.listens.done():
                self.listens.set_exception(StateError(f"{self.name} told an address that is none: {error}"))
                self.listens.exception()  # heard, even if nobody waits for it any more
            return
        if not self.listens.done():
            self.listens.set_result(self.address)

    def _write_log(self, line: bytes) -> None:
        warning = self._log.write(line) if self._log is not None else None
        if warning is not None and self._screen is not None:
            self._screen.note(f"warning: {warning}")


def _object(line: bytes) -> dict[str, Any]:
    if not line.startswith(b"{"):
        return {}
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
