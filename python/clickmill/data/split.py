"""Cut a log into a part to train on and a part to test on: by order, at random, or by time.

Lines are copied as they are. A split by time holds the log in memory, the others do not.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from clickmill.errors import ConfigError, DataError
from clickmill.store import durable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Split:
    """What was written."""

    train: Path
    test: Path
    train_lines: int
    test_lines: int


@dataclass(frozen=True)
class Fields:
    """How to find a field in a line: the delimiter, and the names in the header or by position."""

    delimiter: str
    has_header: bool


def split_log(
    path: Path,
    out: Path,
    *,
    fraction: float,
    by: str = "order",
    fields: Fields | None = None,
    seed: int = 0,
) -> Split:
    """Write `train` and `test` files, named after `path`, into the folder `out`.

    `by` is `order` (the last lines are the test), `random` (each line by a hash of its number and the
    seed), or the name or number of a column with numbers: then both parts are sorted by it, and the test
    is what comes last. The header, where there is one, goes into both.
    """
    if not 0.0 < fraction < 1.0:
        raise ConfigError(f"fraction is {fraction:g}; allowed: more than 0, less than 1")
    fields = fields or Fields("\t", has_header=False)
    targets = out / f"train-{path.name.removesuffix('.gz')}", out / f"test-{path.name.removesuffix('.gz')}"
    with durable.new_file(targets[0]) as train, durable.new_file(targets[1]) as test:
        if by in {"order", "random"}:
            counts = _stream(path, (train, test), fraction, fields, None if by == "order" else seed)
        else:
            counts = _sorted(path, (train, test), fraction, fields, by)
        if 0 in counts:
            raise DataError(
                f"{path}: a fraction of {fraction:g} of {sum(counts)} lines leaves one side empty",
                hint="take another fraction",
            )
    return Split(*targets, *counts)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        is_gzip = file.read(2) == _GZIP_MAGIC
    with gzip.open(path, "rb") if is_gzip else path.open("rb") as file:
        for line in file:
            yield line if line.endswith(b"\n") else line + b"\n"


def _stream(
    path: Path, out: tuple[IO[bytes], IO[bytes]], fraction: float, fields: Fields, seed: int | None
) -> tuple[int, int]:
    total = sum(1 for _ in _lines(path)) - fields.has_header
    cut = round(total * (1.0 - fraction))
    counts = [0, 0]
    lines = _lines(path)
    if fields.has_header:
        header = next(lines, b"")
        out[0].write(header)
        out[1].write(header)
    for number, line in enumerate(lines):
        side = int(number >= cut) if seed is None else int(_draw(seed, number) < fraction)
        out[side].write(line)
        counts[side] += 1
    return counts[0], counts[1]


def _draw(seed: int, number: int) -> float:
    """A number in [0, 1) that depends on the seed and the line's number alone."""
    digest = hashlib.blake2b(f"{seed}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2.0**64


def _sorted(
    path: Path, out: tuple[IO[bytes], IO[bytes]], fraction: float, fields: Fields, column: str
) -> tuple[int, int]:
    lines = list(_lines(path))
    header = lines.pop(0) if fields.has_header and lines else b""
    index = _column_index(header, fields, column)
    delimiter = fields.delimiter.encode()
    keys = np.empty(len(lines), np.float64)
    for number, line in enumerate(lines):
        parts = line.rstrip(b"\r\n").split(delimiter)
        try:
            keys[number] = float(parts[index])
        except (IndexError, ValueError) as error:
            place = number + 1 + fields.has_header
            raise DataError(f"{path}:{place}: column `{column}` is not a number") from error
    order = np.argsort(keys, kind="stable")
    cut = round(len(lines) * (1.0 - fraction))
    for file, part in zip(out, (order[:cut], order[cut:]), strict=True):
        file.write(header)
        file.writelines(lines[number] for number in part)
    return cut, len(lines) - cut


def _column_index(header: bytes, fields: Fields, column: str) -> int:
    if fields.has_header:
        names = header.decode(errors="replace").rstrip("\r\n").split(fields.delimiter)
        if column in names:
            return names.index(column)
        if not column.isdecimal():
            raise ConfigError(f"there is no column `{column}`; known: {', '.join(names)}")
    if not column.isdecimal() or int(column) < 1:
        raise ConfigError(
            f"`{column}` names no column: without a header columns are numbered from 1",
            hint="split by `order`, `random` or a column's number",
        )
    return int(column) - 1
