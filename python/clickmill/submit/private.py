"""Files and folders that only their owner can read, whatever the umask is."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from clickmill.store.durable import writing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """A file that only its owner can read."""
    with writing(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)


def write_private_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Texts by name, in a folder that only its owner can enter; made where it is not there.

    All of them, or none: what cannot be written as a whole is taken away again. An empty folder that is there
    stays the same one, for somebody may stand in it.
    """
    with contextlib.ExitStack() as undo:
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            if not folder.exists():
                folder.mkdir(mode=0o700)
                undo.callback(folder.rmdir)
            folder.chmod(0o700)
        for name, text in files.items():
            undo.callback((folder / name).unlink, missing_ok=True)
            write_private(folder / name, text.encode())
        undo.pop_all()
