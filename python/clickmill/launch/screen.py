"""What all processes of a run say, on one stderr: prefixed, coloured, line by line, with one progress bar."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Protocol, TextIO

from clickmill.launch.failure import told_error
from clickmill.launch.terminal import is_terminal
from clickmill.store.durable import is_full

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_COLOURS = {
    "pserver": (36, 34, 96, 94),
    "trainer": (32, 33, 35, 92, 93, 95),
    "worker": (32, 33, 35, 92, 93, 95),
}
"""ANSI codes, by kind of role and in turn by index; red is for errors."""


def coloured_name(name: str, width: int) -> str:
    """`trainer 0` in the colour of that trainer, padded."""
    kind, _, index = name.partition(" ")
    colours = _COLOURS.get(kind, (37,))
    return f"\x1b[{colours[int(index or 0) % len(colours)]}m{name:<{width}}\x1b[0m"


def readable(line: str) -> list[str]:
    """A line of a role as people read it: an error that was told as JSON in its words."""
    told = told_error(line)
    if told is None:
        return [line]
    return [f"error: {told['message']}", *([f"hint: {told['hint']}"] if told.get("hint") else [])]


class Display(Protocol):
    """A progress bar that lines are written above."""

    def line(self, text: str) -> None:
        """Write a line, with its ANSI codes, above the bar."""

    def progress(self, name: str, told: Mapping[str, Any]) -> None:
        """What a trainer says it has done."""

    def close(self) -> None:
        """Leave the bar as it is."""


class Screen:
    """Merges the lines of roles; `names` are those that will speak, so that all prefixes are of one width."""

    def __init__(
        self, names: Iterable[str], *, stream: TextIO | None = None, display: Display | None = None
    ) -> None:
        self._stream: TextIO | None = sys.stderr if stream is None else stream
        self._display = display
        self._width = max((len(name) for name in names), default=0)
        self._is_coloured = is_terminal(self._stream) and not os.environ.get("NO_COLOR")

    def line(self, name: str, text: str) -> None:
        """`trainer 0 | text`; an error that was told as JSON in its words."""
        prefix = coloured_name(name, self._width) if self._is_coloured else f"{name:<{self._width}}"
        for each in readable(text):
            self._write(f"{prefix} | {each}")

    def note(self, text: str) -> None:
        """Words of the supervisor."""
        self._write(text)

    def progress(self, name: str, told: Mapping[str, Any]) -> None:
        if self._display is None:
            return
        try:
            self._display.progress(name, told)
        except (OSError, ValueError) as error:
            self._lose(error)

    def close(self) -> None:
        if self._display is not None:
            with contextlib.suppress(OSError, ValueError):  # the reason of the end counts, not a lost bar
                self._display.close()
            self._display = None

    def _write(self, text: str) -> None:
        try:
            if self._display is not None:
                self._display.line(text)
            elif self._stream is not None:
                self._stream.write(text + "\n")
                self._stream.flush()
        except (OSError, ValueError) as error:
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        """Nobody looks any more: the pipe or the terminal is gone.

        The processes have to be seen to all the same, and the logs have every word. A file on a full disk is
        another matter: there may be room for later lines.
        """
        if is_full(error):
            return
        self._display = None
        self._stream = None
