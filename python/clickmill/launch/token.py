"""The secret that the processes of one run know each other by."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from clickmill.store.durable import partial_name, writing

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "token"
_NUM_BYTES = 32


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_hex(_NUM_BYTES)


def write_token(path: Path, token: str) -> None:
    """Write a token that only its owner can read, in one step."""
    partial = partial_name(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(token + "\n")
        partial.replace(path)
