"""Splitting a log of lines into a training and a test part, streamed and deterministic.

Both parts appear only when both are complete. A line stays byte for byte what it was.
"""

from __future__ import annotations

import gzip
import os
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import IO, TYPE_CHECKING

from clickmill.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_HASH_RANGE = 1 << 64


class SplitBy(StrEnum):
    """Which lines are held out."""

    ORDER = "order"
    HASH = "hash"


@dataclass(frozen=True, slots=True)
class SplitReport:
    """What was written."""

    train: str
    test: str
    train_rows: int
    test_rows: int


def split_log(
    path: Path, folder: Path, *, fraction: float, by: SplitBy, has_header: bool = False
) -> SplitReport:
    """Writes `train` and `test` with the name and compression of `path` into `folder`.

    `order` holds out the last lines; `hash` decides by the content of a line, so that the same line always
    goes to the same part. Raises DataError for a file that cannot be read or has no samples.
    """
    if path.suffix == ".zst":
        raise ConfigError(f"`{path}` is zstd; split takes plain and gzip files", hint="unpack it first")
    is_test = _chooser(path, fraction=fraction, by=by, has_header=has_header)
    folder.mkdir(parents=True, exist_ok=True)
    ending = path.name[path.name.index(".") :] if "." in path.name else ""
    targets = [folder / f"train{ending}", folder / f"test{ending}"]
    if path.resolve() in [target.resolve() for target in targets]:
        raise ConfigError(f"would write over `{path}`; give another folder with `--output`")
    half_written = [target.with_name(f".{target.name}.part") for target in targets]
    try:
        counts = _write(path, half_written, is_test, has_header=has_header)
        for part, target in zip(half_written, targets, strict=True):
            os.replace(part, target)  # noqa: PTH105
    finally:
        for part in half_written:
            part.unlink(missing_ok=True)
    return SplitReport(str(targets[0]), str(targets[1]), *counts)


def _chooser(path: Path, *, fraction: float, by: SplitBy, has_header: bool) -> Callable[[int, bytes], bool]:
    if by is SplitBy.HASH:
        limit = fraction * _HASH_RANGE
        return lambda _, line: _line_hash(line) < limit
    num_rows = sum(1 for _ in _lines(path)) - int(has_header)
    if num_rows < 1:
        raise DataError(f"`{path}` has no samples")
    first_test_row = num_rows - round(num_rows * fraction)
    return lambda row, _: row >= first_test_row


def _line_hash(line: bytes) -> int:
    return int.from_bytes(blake2b(line.rstrip(b"\r\n"), digest_size=8).digest(), "little")


def _write(
    path: Path, parts: list[Path], is_test: Callable[[int, bytes], bool], *, has_header: bool
) -> tuple[int, int]:
    counts = [0, 0]
    with ExitStack() as stack:
        files = [stack.enter_context(_create(part, like=path)) for part in parts]
        lines = _lines(path)
        if has_header:
            header = next(lines, b"")
            for file in files:
                file.write(header)
        for row, line in enumerate(lines):
            which = int(is_test(row, line))
            # A last line without an end must not run into the next one where order changes nothing else.
            files[which].write(line if line.endswith(b"\n") else line + b"\n")
            counts[which] += 1
    return counts[0], counts[1]


def _create(path: Path, *, like: Path) -> IO[bytes]:
    # No time stamp in the gzip header: the same input gives the same bytes.
    return gzip.GzipFile(path, "wb", mtime=0) if like.suffix == ".gz" else path.open("wb")  # type: ignore[return-value]


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot read `{path}`: {reason}") from error
