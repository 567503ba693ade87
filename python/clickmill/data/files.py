"""Which files a data set is made of."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

FileSize = tuple[str, int]
"""Name of a file, without its folder, and its bytes."""

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd"}


@dataclass(frozen=True)
class FileRange:
    """The lines of a file that start at `start` or later and before `end`; a whole file by default."""

    path: Path
    start: int = 0
    end: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As the native reader takes it."""
        return {"path": str(self.path), "start": self.start, "end": self.end}


def find_files(patterns: Sequence[str], base: Path) -> list[Path]:
    """Files of paths, folders and patterns, relative to `base`: patterns in their order, names sorted.

    Hidden files and files of side systems (`_SUCCESS`) are passed over in folders and patterns, never
    when they are named.
    """
    files: list[Path] = []
    for pattern in patterns:
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
    return [(file.path.name, file.path.stat().st_size) for file in files]


def hold_out(files: Sequence[Path], fraction: float) -> tuple[list[FileRange], list[FileRange]]:
    """Cut a data set into what is trained on and its last `fraction`, by bytes, at line ends.

    A compressed file cannot be cut, so it goes to the side on which more of it lies; a single one is an
    error.
    """
    sizes = [path.stat().st_size for path in files]
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


def compression(path: Path) -> str | None:
    """`gzip` or `zstd` by the first bytes, None for a plain file. Raises DataError for an unreadable one."""
    try:
        with path.open("rb") as file:
            return _COMPRESSED.get(file.read(2))
    except OSError as error:
        raise DataError(f"cannot read `{path}`: {error.strerror or error}") from error
