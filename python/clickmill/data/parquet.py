"""Parquet files as samples; needs the extra `parquet`.

Values go through the plan as text, as if they stood in a CSV file: the same number gives the same sign,
whatever the file that it is in. Lists are multi-valued slots; null is an absent value.
"""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from clickmill._core import ColumnBatcher
from clickmill.data.arriving import bring_in_turn
from clickmill.data.records import num_read
from clickmill.errors import DataError, MissingExtra
from clickmill.store.remote.reading import RangeReader
from clickmill.store.remote.store import RemoteFile

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtra(
        "Parquet files need the package `pyarrow`", hint="install it with `pip install 'clickmill[parquet]'`"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from clickmill._core import Batch, Schema
    from clickmill.data.files import FilePath

    Column = tuple[str, NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64] | None]

_ROWS_PER_CHUNK = 8192
_FOOTER_BYTES = 64 << 10
"""Read at once of a file elsewhere, whose metadata stands at its end."""


class ParquetSource:
    """Batches from Parquet files, read a chunk of rows at a time; its position is the number of rows read."""

    def __init__(
        self,
        files: Sequence[FilePath],
        schema: Schema,
        *,
        batch_size: int,
        keep_last: bool,
        require_slots: bool,
        has_binary_label: bool,
        max_bad_records: int | None,
        shuffle: Mapping[str, Any],
        pass_number: int,
        position: str | None,
    ) -> None:
        self._files = list(files)
        self._rows = [_metadata(path).num_rows for path in self._files]
        config = {
            "batch_size": batch_size,
            "keep_last": keep_last,
            "require_slots": require_slots,
            "binary_label": has_binary_label,
            "max_bad_lines": max_bad_records,
            "sources": [(str(path), rows) for path, rows in zip(self._files, self._rows, strict=True)],
            "shuffle": dict(shuffle),
            "pass": pass_number,
        }
        self._batcher = ColumnBatcher(schema, json.dumps(config), position)
        self._num_read = num_read(position)
        if self._num_read > sum(self._rows):
            raise DataError(
                f"the files have {sum(self._rows)} rows, the checkpoint was written after {self._num_read}",
                hint="the data has changed since; start a new run",
            )
        self._chunks = self._read(self._batcher.columns(), self._num_read)
        self._ready: list[Batch] = []
        self._is_finished = False

    def next(self) -> Batch | None:
        """The next batch; None at the end."""
        while not self._ready and not self._is_finished:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._ready = list(reversed(self._batcher.finish()))
                self._is_finished = True
            else:
                self._num_read += chunk.num_rows
                columns = [_text_column(name, chunk.column(name)) for name in chunk.schema.names]
                self._ready = list(reversed(self._batcher.add(columns)))
        if self._ready:
            return self._ready.pop()
        self._batcher.check_slots()
        return None

    def absent_slots(self) -> list[str]:
        """Slots whose columns have had no value so far."""
        return self._batcher.absent_slots()

    def progress(self) -> tuple[int, int]:
        """Rows read and rows in all."""
        return self._num_read, sum(self._rows)

    def bad_lines(self) -> str:
        """Rows that were skipped, by file and number."""
        return self._batcher.bad_lines()

    def close(self) -> None:
        """Close the file that is being read."""
        self._chunks.close()

    def _read(self, wanted: list[str], skip: int) -> Generator[pa.RecordBatch]:
        first = 0
        while first < len(self._rows) and skip >= self._rows[first]:
            skip -= self._rows[first]
            first += 1
        with contextlib.closing(bring_in_turn(self._files[first:])) as paths:
            for path in paths:
                yield from _chunks(path, wanted, skip)
                skip = 0


def _chunks(path: Path, wanted: list[str], skip: int) -> Generator[pa.RecordBatch]:
    """Rows of one file after the first `skip`."""
    with pq.ParquetFile(path) as file:
        names = [name for name in wanted if name in file.schema_arrow.names]
        for chunk in file.iter_batches(batch_size=_ROWS_PER_CHUNK, columns=names):
            if skip >= chunk.num_rows:
                skip -= chunk.num_rows
                continue
            yield chunk.slice(skip)
            skip = 0


def _metadata(path: FilePath) -> Any:
    try:
        if isinstance(path, RemoteFile):
            with io.BufferedReader(RangeReader(path), _FOOTER_BYTES) as file:
                return pq.read_metadata(file)
        return pq.read_metadata(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {error}") from error


def _text_column(name: str, array: pa.Array) -> Column:
    lists = None
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        array = array.cast(pa.large_list(array.type.value_type))
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        lists = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        array = pc.list_flatten(array)
    text = _text(name, array)
    offsets, values = text.buffers()[1:]
    start = text.offset
    ends = np.frombuffer(offsets, np.int64)[start : start + len(text) + 1]
    data = np.frombuffer(values, np.uint8) if values is not None else np.empty(0, np.uint8)
    return name, ends - ends[0], data[ends[0] : ends[-1]], lists


def _text(name: str, array: pa.Array) -> Any:
    """The values as text, null as the empty text."""
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pc.fill_null(array.cast(pa.large_binary()), b"")
    elif pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
    try:
        return pc.fill_null(array.cast(pa.large_string()), "")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"column `{name}` has type {kind}, which has no text form",
            hint="store numbers, text, or lists of them",
        ) from error
