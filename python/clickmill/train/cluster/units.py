"""The pieces of the data that trainers are given: files, or ranges of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.data.files import FileRange, bytes_of, compression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickmill.data.files import FilePath

_MIN_BYTES = 8 << 20
_MAX_BYTES = 256 << 20
_LEASES_EACH = 8
"""Pieces for each trainer: few, for their last batches are short; enough for a slow one to be helped."""


@dataclass(frozen=True)
class Unit:
    """A piece of the data that one trainer works through."""

    file: FileRange
    is_validation: bool
    source: str
    """The file of the data that it was cut from."""

    @property
    def name(self) -> str:
        """For people."""
        file = self.file
        if file.start == 0 and file.end is None:
            return file.path.name
        return f"{file.path.name}[{file.start}..{'' if file.end is None else file.end}]"

    @property
    def num_bytes(self) -> int:
        """Of the file, as it lies there."""
        return size_of(self.file)

    def to_json(self) -> dict[str, Any]:
        """As the job holds it."""
        return {
            "name": self.name,
            "source": self.source,
            "input": {"file": self.file.to_json(), "is_validation": self.is_validation},
        }

    @classmethod
    def from_json(cls, unit: dict[str, Any], known: Mapping[str, FilePath]) -> Unit:
        """Back from the job, with files as they are `known` to this trainer."""
        return cls(
            FileRange.from_json(unit["input"]["file"], known),
            unit["input"]["is_validation"],
            unit["source"],
        )


def cut(files: Sequence[FileRange], piece_bytes: int, *, can_cut: bool, is_validation: bool) -> list[Unit]:
    """Units of files, in order."""
    return [
        Unit(piece, is_validation, f"{file.identity}[{file.start}..{'' if file.end is None else file.end}]")
        for file in files
        for piece in cut_files([file], piece_bytes, can_cut=can_cut)
    ]


def unit_bytes(files: Sequence[FileRange], num_trainers: int, asked: int) -> int:
    """How large pieces should be; `asked` is what the configuration says, 0 for us to choose."""
    if asked:
        return asked
    total = sum(size_of(file) for file in files)
    # One trainer needs no help, and every piece ends in a short batch.
    pieces = num_trainers * _LEASES_EACH if num_trainers > 1 else 1
    size = min(max(total // pieces, _MIN_BYTES), _MAX_BYTES)
    # However little there is, nobody is without work: the joint batch of `sync` has a part of each trainer.
    return min(size, max(total // num_trainers, 1))


def cut_files(files: Sequence[FileRange], piece_bytes: int, *, can_cut: bool) -> list[FileRange]:
    """Ranges of about `piece_bytes`, in order; a compressed file, or one of a reader, stays whole."""
    pieces: list[FileRange] = []
    for file in files:
        size = size_of(file)
        count = max(round(size / piece_bytes), 1)
        if count == 1 or not can_cut or compression(file.path) is not None:
            pieces.append(file)
            continue
        bounds = [file.start + size * index // count for index in range(count)]
        for index, begin in enumerate(bounds):
            end = bounds[index + 1] if index + 1 < count else file.end
            pieces.append(FileRange(file.path, begin, end))
    return pieces


def size_of(file: FileRange) -> int:
    """Bytes on disk."""
    end = bytes_of(file.path) if file.end is None else file.end
    return max(end - file.start, 0)
