"""Files that hold one secret: read in one way, whoever names them, and told of without what is in them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clickmill.store.whole_file import open_at_once

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 65_536
"""No secret is longer; a device would never end."""


@dataclass(frozen=True, slots=True)
class SecretFile:
    """What was found in a file: a secret, or why there is none."""

    text: str = field(default="", repr=False)
    problem: str = ""
    """End of a sentence that begins with the file; empty where there is a secret."""
    is_readable_by_others: bool = False


def read_secret_file(path: Path) -> SecretFile:
    """The one line of a file, without spaces around it.

    Only of a regular one: secrets are read more than once, which a pipe does not allow.
    """
    try:
        with open(path, "rb", opener=open_at_once) as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if not stat.S_ISREG(mode):
                return SecretFile(problem="is no regular file")
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # the latter of a name that no file can have
        return SecretFile(problem=f"cannot be read: {getattr(error, 'strerror', None) or error}")
    text = content.decode(errors="replace").strip()
    if problem := _problem(content, text):
        return SecretFile(problem=problem)
    return SecretFile(text, is_readable_by_others=may_others_read(mode))


def _problem(content: bytes, text: str) -> str | None:
    if len(content) > MAX_BYTES:
        return f"has more than {MAX_BYTES} bytes, which is no secret"
    if not text:
        return "holds nothing"
    if "\ufffd" in text:
        return "is not UTF-8"
    return "has several lines; a secret is one" if len(text.splitlines()) > 1 else None


def may_others_read(mode: int) -> bool:
    """Whether the mode of a file lets users other than its owner read it."""
    return bool(mode & (stat.S_IRGRP | stat.S_IROTH))
