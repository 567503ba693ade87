"""Folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING

from clickmill.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Numbers of the system for a disk that has no more room, or not for this user."""


def sync_folder(path: Path) -> None:
    """Make the entries of a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def partial_name(path: Path) -> Path:
    """A name beside `path` for what is not whole, or no longer; `clear_partial` removes what has one."""
    return path.with_name(f".{path.name}.partial-{os.getpid()}-{secrets.token_hex(4)}")


class _Writer(io.FileIO):
    """A file whose errors name the place that it is written for: the kernel names none for a full disk."""

    def __init__(self, partial: Path, path: Path) -> None:
        super().__init__(partial, "w")
        self._path = path

    def write(self, data: ReadableBuffer, /) -> int:
        with writing(self._path):
            return super().write(data)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Around what writes to `path`: what the system refuses becomes a StorageError that names it."""
    try:
        yield
    except OSError as error:
        hint = "free some space on its disk, then run it again" if is_full(error) else None
        raise StorageError(f"cannot write `{path}`: {error.strerror or error}", hint=hint) from error


def is_full(error: BaseException) -> bool:
    """Whether it is for want of room on a disk."""
    return isinstance(error, OSError) and error.errno in FULL


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes its name, in place of an older one, only when the block ends well.

    Raises StorageError where it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = partial_name(path)
        writer = _Writer(partial, path)
    try:
        with io.BufferedWriter(writer) as file:
            yield file
            file.flush()
            with writing(path):
                os.fsync(file.fileno())
        with writing(path):
            partial.replace(path)
            sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file in one step: a reader sees the old content or the new."""
    with new_file(path) as file:
        file.write(data)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name only when the block ends well.

    A folder of the same name is replaced. After a crash at any instant either the old or the new one is
    there; what is left of the other starts with `.` and is removed by the next `clear_partial`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_name(path)
    partial.mkdir()
    try:
        yield partial
        publish(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def publish(partial: Path, path: Path) -> None:
    """Let a file or folder that is whole take its name in one step, when it is durable.

    What has that name already is replaced: of a folder, the old one is at `partial` then, for the caller to
    remove.
    """
    if partial.is_dir():
        for folder, _, names in os.walk(partial):
            for name in names:
                _sync_file(Path(folder) / name)
            sync_folder(Path(folder))
    else:
        _sync_file(partial)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() or (partial.is_dir() and path.exists()):
        _exchange(partial, path)
    else:
        partial.replace(path)
    sync_folder(path.parent)


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def clear_partial(parent: Path) -> None:
    """Remove what interrupted writers left in `parent`."""
    for path in parent.glob(".*.partial-*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _exchange(partial: Path, path: Path) -> None:
    """Swap two names in one step, so that `path` never vanishes."""
    from clickmill._core import exchange_names  # noqa: PLC0415 - the kernel call is in the extension

    exchange_names(str(partial), str(path))
