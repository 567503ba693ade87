"""The error of a command, as a file for the process above it: its words on stderr are for people."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "CLICKMILL_ERROR_FILE"


class ErrorFile:
    """Where a role leaves its error; `variables` tell it where."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def variables(self) -> dict[str, str]:
        return {VARIABLE: str(self._path)}

    def read(self) -> dict[str, Any] | None:
        """`kind`, `message` and `hint` of the error; None where the role has left none."""
        with suppress(OSError, ValueError):
            body = json.loads(self._path.read_bytes())["error"]
            if isinstance(body, dict) and isinstance(body.get("message"), str):
                return body
        return None


def leave_error(told: str) -> None:
    """By the role: `told` is its error as JSON. Nothing where nobody waits for it."""
    path = os.environ.get(VARIABLE)
    if path:
        with suppress(OSError):  # its words are on stderr, too
            Path(path).write_text(told, encoding="utf-8")


@contextmanager
def error_file() -> Iterator[ErrorFile]:
    """A file of this block."""
    descriptor, name = tempfile.mkstemp(prefix="clickmill-error-")
    os.close(descriptor)
    try:
        yield ErrorFile(Path(name))
    finally:
        Path(name).unlink(missing_ok=True)
