"""One writer for a folder, whatever the number of processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

from clickmill.errors import StateError
from clickmill.store import durable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_NAME = ".lock"


@contextlib.contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold a folder, made if need be, until the block ends; StateError where another process holds it.

    The kernel lets go of the lock when its process ends, however it ends. The file stays: removing it could
    take away a lock that another process has just got.
    """
    with durable.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise StateError(
                f"folder `{folder}` is in use by another run, process {holder}",
                hint="wait for it to end, or give this run another `output_path`",
            ) from error
        with durable.writing(folder / FILE_NAME):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
