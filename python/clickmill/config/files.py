"""`data_path`: which files it means."""

from __future__ import annotations

from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable


def expand_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Files of all `paths` in their order; those of a folder and of a pattern by name.

    In folders, names that begin with `.` or `_` are left out: markers and half-written files have such names.
    Raises DataError where a path means no file.
    """
    return tuple(file for path in paths for file in _expand(path))


def _expand(path: str) -> list[str]:
    if Path(path).is_file():
        return [path]
    if Path(path).is_dir():
        files = [file for file in Path(path).rglob("*") if file.is_file() and not _is_hidden(file, path)]
        if not files:
            raise DataError(f"folder `{path}` has no files")
        return sorted(str(file) for file in files)
    # A pattern may begin with a root or hold `..`, which Path.glob does not take.
    matches = sorted(file for file in glob(path, recursive=True) if Path(file).is_file())  # noqa: PTH207
    if not matches:
        what = "no file matches" if has_magic(path) else "there is no file or folder"
        raise DataError(f"{what} `{path}`", hint="`clickmill data synth` makes a log to try things with")
    return matches


def _is_hidden(file: Path, folder: str) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
