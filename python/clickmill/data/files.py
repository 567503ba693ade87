"""Which files a data set is made of."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.errors import DataError
from clickmill.store.remote.finding import find_remote
from clickmill.store.remote.reading import head_of
from clickmill.store.remote.store import RemoteFile
from clickmill.store.remote.url import is_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FilePath = Path | RemoteFile
"""A file of this host, or one elsewhere."""

FileSize = tuple[str, int]
"""Name of a file, without its folder, and its bytes."""

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}


@dataclass(frozen=True)
class FileRange:
    """The lines of a file that start at `start` or later and before `end`; a whole file by default."""

    path: FilePath
    start: int = 0
    end: int | None = None

    @property
    def identity(self) -> str:
        """Path or URL: what others know the file by."""
        return self.path.url if isinstance(self.path, RemoteFile) else str(self.path)

    def to_json(self) -> dict[str, Any]:
        """As the native reader takes it."""
        return {"path": self.identity, "start": self.start, "end": self.end}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], known: Mapping[str, FilePath]) -> FileRange:
        """Back from JSON; files elsewhere as they are `known` here."""
        text = content["path"]
        path = known.get(text) or (find_remote(text)[0] if is_url(text) else Path(text))
        return cls(path, content["start"], content["end"])


def find_files(patterns: Sequence[str], base: Path) -> list[FilePath]:
    """Files of paths, folders, patterns and URLs: patterns in their order, names sorted.

    Paths are relative to `base`. Hidden files and files of side systems (`_SUCCESS`) are passed over in
    folders and patterns, never when they are named.
    """
    files: list[FilePath] = []
    for pattern in patterns:
        if is_url(pattern):
            files.extend(find_remote(pattern))
            continue
        path = base / pattern
        if path.is_file():
            files.append(path)
            continue
        if path.is_dir():
            found = sorted(entry for entry in path.iterdir() if entry.is_file())
        else:
            # `glob`, not `Path.glob`: the pattern may be absolute and may go up.
            names = glob.glob(str(path), recursive=True)  # noqa: PTH207
            found = sorted(Path(name) for name in names if Path(name).is_file())
        found = [entry for entry in found if not entry.name.startswith((".", "_"))]
        if not found:
            what = "folder is empty" if path.is_dir() else "no such file, folder or pattern"
            # Absolute, for it may be made of the current folder, `workspace` and what the user wrote.
            raise DataError(
                f"`{path.absolute()}`: {what}",
                hint="check `data_path` of the data set, and `workspace` where the path begins with it",
            )
        files.extend(found)
    return files


def sizes_of(files: Sequence[FileRange]) -> list[FileSize]:
    """What a later look at the files can be compared with; a data set may move to another folder."""
    return [(file.path.name, bytes_of(file.path)) for file in files]


def bytes_of(path: FilePath) -> int:
    """Length of a file: as it is now, of one elsewhere as it was found."""
    return path.num_bytes if isinstance(path, RemoteFile) else path.stat().st_size


def hold_out(files: Sequence[FilePath], fraction: float) -> tuple[list[FileRange], list[FileRange]]:
    """Cut a data set into what is trained on and its last `fraction`, by bytes, at line ends.

    A compressed file cannot be cut, so it goes to the side on which more of it lies; a single one is an
    error.
    """
    sizes = [bytes_of(path) for path in files]
    cut = round(sum(sizes) * (1.0 - fraction))
    train: list[FileRange] = []
    held: list[FileRange] = []
    begin = 0
    for path, size in zip(files, sizes, strict=True):
        inside = cut - begin
        begin += size
        if inside >= size:
            train.append(FileRange(path))
        elif inside <= 0:
            held.append(FileRange(path))
        elif compression(path) is None:
            train.append(FileRange(path, 0, inside))
            held.append(FileRange(path, inside, None))
        else:
            (train if inside * 2 >= size else held).append(FileRange(path))
    if not train or not held:
        raise DataError(
            f"a fraction of {fraction:g} cannot be held out of {len(files)} compressed file(s)",
            hint="cut it with `clickmill data split`, and give `validation.data_path`",
        )
    return train, held


def compression(path: FilePath) -> str | None:
    """`gzip` or `zstd` by the first bytes, None for a plain file. Raises DataError for an unreadable one."""
    if isinstance(path, RemoteFile):
        return _COMPRESSED.get(head_of(path)[:2])
    try:
        with path.open("rb") as file:
            return _COMPRESSED.get(file.read(2))
    except OSError as error:
        raise DataError(f"cannot read `{path}`: {error.strerror or error}") from error
