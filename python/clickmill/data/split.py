"""Cut a log into a part to train on and a part to test on: by order, by a hash of the line, or by time.

Lines are copied as they are, and a gzip log gives gzip parts. The same log, options and seed give the same
bytes. A split by a column holds the log in memory, the others do not.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from clickmill.data.files import compression
from clickmill.errors import ConfigError, DataError
from clickmill.store import durable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Parts = tuple[IO[bytes], IO[bytes]]


@dataclass(frozen=True)
class Split:
    """What was written; a header is not counted."""

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
    """Write `train-NAME` and `test-NAME` into the folder `out`; each appears whole or not at all.

    `by` is `order` (the last lines are the test), `hash` (each line by a hash of its text and the seed: equal
    lines are on one side, whatever file they are in), or the name or number of a column with numbers or
    sortable texts such as ISO dates: then both parts are sorted by it, and the test is what comes last. The
    header, where there is one, goes into both.
    """
    if not 0.0 < fraction < 1.0:
        raise ConfigError(f"fraction is {fraction:g}; allowed: more than 0, less than 1")
    fields = fields or Fields("\t", has_header=False)
    kind = compression(path)
    if kind == "zstd":
        raise DataError(f"{path} is compressed with zstd", hint="decompress it first, or compress with gzip")
    targets = out / f"train-{path.name}", out / f"test-{path.name}"
    with contextlib.ExitStack() as stack:
        train, test = (stack.enter_context(_part(target, is_gzip=kind == "gzip")) for target in targets)
        if by == "order":
            counts = _by_order(path, (train, test), fraction, fields)
        elif by == "hash":
            counts = _by_hash(path, (train, test), fraction, fields, seed)
        else:
            counts = _by_column(path, (train, test), fraction, fields, by)
        if 0 in counts:
            raise DataError(
                f"{path}: a fraction of {fraction:g} of {sum(counts)} lines leaves one side empty",
                hint="take another fraction",
            )
    return Split(*targets, *counts)


@contextlib.contextmanager
def _part(path: Path, *, is_gzip: bool) -> Iterator[IO[bytes]]:
    with durable.new_file(path) as file:
        if not is_gzip:
            yield file
            return
        # Neither name nor time in the header: equal parts are equal files.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]  # an IO[bytes] in all but its declaration


def _lines(path: Path) -> Iterator[bytes]:
    """Lines of the log; DataError where it cannot be read, and never for what is done with a line."""
    with gzip.open(path, "rb") if compression(path) == "gzip" else path.open("rb") as file:
        while True:
            try:
                line = file.readline()
            except (OSError, EOFError) as error:
                raise DataError(f"cannot read `{path}`: {error}") from error
            if not line:
                return
            yield line if line.endswith(b"\n") else line + b"\n"


def _samples(path: Path, out: Parts, fields: Fields) -> Iterator[bytes]:
    """Lines after the header, which goes to both parts."""
    lines = _lines(path)
    if fields.has_header:
        header = next(lines, b"")
        for part in out:
            part.write(header)
    return lines


def _by_order(path: Path, out: Parts, fraction: float, fields: Fields) -> tuple[int, int]:
    total = sum(1 for _ in _lines(path)) - fields.has_header
    cut = round(total * (1.0 - fraction))
    for number, line in enumerate(_samples(path, out, fields)):
        out[number >= cut].write(line)
    return cut, total - cut


def _by_hash(path: Path, out: Parts, fraction: float, fields: Fields, seed: int) -> tuple[int, int]:
    counts = [0, 0]
    key = seed.to_bytes(8, "little")
    limit = round(fraction * 2**64)
    for line in _samples(path, out, fields):
        digest = hashlib.blake2b(line, digest_size=8, key=key).digest()
        is_test = int.from_bytes(digest, "little") < limit
        out[is_test].write(line)
        counts[is_test] += 1
    return counts[0], counts[1]


def _by_column(path: Path, out: Parts, fraction: float, fields: Fields, column: str) -> tuple[int, int]:
    header = next(_lines(path), b"") if fields.has_header else b""
    index = _column_index(header, fields, column)
    lines = list(_samples(path, out, fields))
    keys = _keys(path, lines, fields, index, column)
    order = sorted(range(len(lines)), key=keys.__getitem__)  # stable
    cut = round(len(lines) * (1.0 - fraction))
    for part, numbers in zip(out, (order[:cut], order[cut:]), strict=True):
        part.writelines(lines[number] for number in numbers)
    return cut, len(lines) - cut


def _keys(
    path: Path, lines: list[bytes], fields: Fields, index: int, column: str
) -> list[float] | list[bytes]:
    """Values of the column: numbers if the first is one, else texts."""
    texts: list[bytes] = []
    delimiter = fields.delimiter.encode()
    for number, line in enumerate(lines, start=1 + fields.has_header):
        parts = line.rstrip(b"\r\n").split(delimiter)
        if index >= len(parts) or not parts[index]:
            raise DataError(f"{path}:{number}: column `{column}` is empty")
        texts.append(parts[index])
    if not texts or _number(texts[0]) is None:
        return texts
    values: list[float] = []
    for number, text in enumerate(texts, start=1 + fields.has_header):
        value = _number(text)
        if value is None:
            shown = text.decode(errors="replace")
            raise DataError(f"{path}:{number}: column `{column}` is `{shown}`, which is not a number")
        values.append(value)
    return values


def _number(text: bytes) -> float | None:
    """An int where it is one: stamps in nanoseconds do not fit a float."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            value: float = kind(text)
            return value if value == value else None  # noqa: PLR0124 - NaN has no place in an order
    return None


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
            hint="split by `order`, `hash` or a column's number",
        )
    return int(column) - 1
