"""A folder that is given out to others: its files and their pieces, and nothing that lies outside of it."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILES = 100_000
"""That a listing tells of: a run has hundreds."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""A named pipe must not be waited for; for files the flag means nothing."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file, by its path from the folder, with `/` between the parts."""

    path: str
    num_bytes: int
    modified_ns: int
    tag: str
    """Another one where the file was replaced or written to."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Opened:
    """A file to read from."""

    file: IO[bytes]
    entry: FileEntry


class ServedFolder:
    """Reads below `root` alone: links are not followed, at any place of a path.

    Paths are walked descriptor by descriptor, so that nobody who writes to the folder can lead a reader out
    of it, whatever is exchanged at whatever moment. Names that begin with a dot are not there: what is not
    whole yet has such names.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def listing(self, path: str = "") -> list[FileEntry]:
        """All files below `path`, by path; FileNotFoundError where there is no such folder or file.

        OverflowError where there are more than a listing may tell of.
        """
        parts = split(path)
        with self._walk(parts[:-1]) as parent:
            name = parts[-1] if parts else "."
            facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISREG(facts.st_mode):
                return [_entry("/".join(parts), facts)]
            if not stat.S_ISDIR(facts.st_mode):
                raise FileNotFoundError(f"`{path}` is neither a file nor a folder")
            descriptor = os.open(name, _FOLDER, dir_fd=parent)
            try:
                return sorted(_files(descriptor, "/".join(parts)), key=lambda entry: entry.path)
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[Opened]:
        """A file, for reading; FileNotFoundError where there is none."""
        parts = split(path)
        if not parts:
            raise FileNotFoundError("a file has a name")
        with self._walk(parts[:-1]) as parent:
            descriptor = os.open(parts[-1], _FILE, dir_fd=parent)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise FileNotFoundError(f"`{path}` is not a file")
            yield Opened(file, _entry("/".join(parts), facts))

    @contextlib.contextmanager
    def _walk(self, parts: list[str]) -> Iterator[int]:
        """A descriptor of the folder that `parts` lead to."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


def split(path: str) -> list[str]:
    """Parts of a path; FileNotFoundError for one that would lead out, or to what is not given out."""
    parts = [part for part in path.split("/") if part]
    if path.startswith("/") or "\0" in path or any(part.startswith(".") for part in parts):
        raise FileNotFoundError(f"`{path}` is no path from the folder")
    return parts


def _files(folder: int, place: str) -> Iterator[FileEntry]:
    num_files = 0
    for inner, names, files, descriptor in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        names[:] = [name for name in names if not name.startswith(".")]
        prefix = "/".join(part for part in (place, inner.removeprefix(".").lstrip("/")) if part)
        for name in files:
            if name.startswith("."):
                continue
            try:
                facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed since
            if not stat.S_ISREG(facts.st_mode):
                continue
            num_files += 1
            if num_files > MAX_FILES:
                raise OverflowError(f"more than {MAX_FILES:,} files; ask for a folder in it")
            yield _entry(f"{prefix}/{name}" if prefix else name, facts)


def _entry(path: str, facts: os.stat_result) -> FileEntry:
    tag = f"{facts.st_ino:x}-{facts.st_size:x}-{facts.st_mtime_ns:x}"
    return FileEntry(path, facts.st_size, facts.st_mtime_ns, tag)
