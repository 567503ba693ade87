"""The log of a process: all it says, as far as the disk has room for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Log:
    """A file of lines. One that cannot be written is left out: no reason to end what is being told of."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Unbuffered: what could not be written is told at once and not tried again when the file is closed.
        self._file = path.open("ab", buffering=0)
        self._num_missing = 0
        """Lines that could not be written since the last one that could."""
        self._is_cut = False
        """The file ends in the first part of a line."""

    def write(self, line: bytes) -> str | None:
        """Append a line; words to tell where it is the first of some that cannot be written.

        When there is room again, the log says how many lines are missing.
        """
        try:
            if self._num_missing:
                self._append(b"log.gap lines=%d" % self._num_missing)
                self._num_missing = 0
            self._append(line)
        except OSError as error:
            self._num_missing += 1
            if self._num_missing > 1:
                return None
            reason = error.strerror or error
            return f"cannot write to `{self._path}`: {reason}; lines are left out until it can be written"
        return None

    def close(self) -> None:
        self._file.close()

    def _append(self, line: bytes) -> None:
        """A disk may have room for the first part of a line alone."""
        rest = memoryview((b"\n" if self._is_cut else b"") + line + b"\n")
        while rest:
            rest = rest[self._file.write(rest) :]
            self._is_cut = bool(rest)
