"""Files of a job on their way to this machine: in pieces that are checked, and in place when all are there.

What is fetched is gathered in a hidden folder, which stays when a fetch is interrupted. The next one compares
what is there, piece by piece, by digests, and fetches the rest.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from clickmill.errors import DataError
from clickmill.jobs.files.folder import split
from clickmill.jobs.files.source import PIECE_BYTES
from clickmill.store import durable
from clickmill.store.lock import only_writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clickmill.jobs.files.folder import FileEntry
    from clickmill.jobs.files.source import FileSource

FETCHING = ".fetching"
"""Folder for what is not whole, in the folder that is fetched to."""


class Progress(Protocol):
    """Hears of bytes."""

    def expect(self, num_bytes: int) -> None:
        """So many more are going to come."""

    def advance(self, num_bytes: int) -> None:
        """So many have come, or were here already."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What appears as a whole: a folder with all its files, or one file."""

    path: str
    """From the folder of the run; where it is put below the target."""
    files: tuple[FileEntry, ...] = field(repr=False)

    @property
    def is_file(self) -> bool:
        return len(self.files) == 1 and self.files[0].path == self.path

    @property
    def num_bytes(self) -> int:
        return sum(entry.num_bytes for entry in self.files)


def download(source: FileSource, units: Sequence[Unit], target: Path, progress: Progress) -> list[Path]:
    """Bring `units` below `target`, each in one step; where they are now.

    StorageError where the disk does not take them, FileGoneError where one was removed meanwhile.
    """
    with only_writer(target / FETCHING):
        for unit in units:
            progress.expect(unit.num_bytes)
        places = [_fetch(source, unit, target, progress) for unit in units]
    shutil.rmtree(target / FETCHING, ignore_errors=True)
    return places


def _fetch(source: FileSource, unit: Unit, target: Path, progress: Progress) -> Path:
    place = _inside(target, unit.path)
    partial = target / FETCHING / hashlib.sha256(unit.path.encode()).hexdigest()[:16]
    for entry in unit.files:
        relative = "" if unit.is_file else entry.path.removeprefix(f"{unit.path}/" if unit.path else "")
        _fetch_file(source, entry, _inside(partial, relative) if relative else partial, progress)
    if not unit.is_file:
        _drop_others(partial, {_inside(partial, _relative(unit, entry)) for entry in unit.files})
    with durable.writing(place):
        durable.publish(partial, place)
    return place


def _relative(unit: Unit, entry: FileEntry) -> str:
    return entry.path.removeprefix(f"{unit.path}/" if unit.path else "")


def _inside(folder: Path, path: str) -> Path:
    """A path of the other side below a folder of ours; DataError for one that would lead out of it."""
    try:
        return folder.joinpath(*split(path))
    except FileNotFoundError as error:
        raise DataError(f"the pod names a file `{path}`, which is no path below a folder") from error


def _fetch_file(source: FileSource, entry: FileEntry, path: Path, progress: Progress) -> None:
    with durable.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        start = _num_right(source, entry, file.fileno())
        progress.advance(start)
        with durable.writing(path):
            file.truncate(start)
            file.seek(start)
        while start < entry.num_bytes:
            piece = source.piece(entry, start)
            with durable.writing(path):
                _write(file.fileno(), piece)
            start += len(piece)
            progress.advance(len(piece))


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _num_right(source: FileSource, entry: FileEntry, descriptor: int) -> int:
    """How many bytes at the beginning of a file that was begun earlier are those of the other side."""
    num_here = min(os.fstat(descriptor).st_size, entry.num_bytes)
    start = 0
    while start < num_here:
        piece = os.pread(descriptor, min(PIECE_BYTES, num_here - start), start)
        if hashlib.sha256(piece).hexdigest() != source.digest(entry, start, len(piece)):
            break
        start += len(piece)
    return start


def _drop_others(folder: Path, wanted: set[Path]) -> None:
    """Remove what an earlier fetch left that is not part of this one."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in wanted:
            path.unlink()
