"""A user's reader class: Python that yields one dict a sample.

    class Reader:
        def __init__(self, files, options): ...
        def __iter__(self):
            yield {"label": 1, "user": "u7", "items": ["a", "b"], "price": 3.5}

The dicts go through the same plan as a line of text: equal text gives equal signs.
"""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import json
import sys
from typing import TYPE_CHECKING, Any

from clickmill._core import RecordBatcher
from clickmill.data.blame import importing, reading
from clickmill.data.presence import FEW_SAMPLES, warn_of_absent
from clickmill.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from clickmill._core import Batch, Schema
    from clickmill.store.remote.cache import Held

_RECORDS_PER_CALL = 1024
_MAX_NAMED = 3
"""Files that an error names; a data set may have thousands."""


def load_reader_class(path: Path, name: str) -> type[Any]:
    """The class `name` of a user's file; ConfigError where the file cannot be imported."""
    if not path.is_file():
        raise ConfigError(f"`data_converter` names `{path}`, which is not a file")
    spec = importlib.util.spec_from_file_location(f"clickmill_reader_{path.stem}", path)
    assert spec is not None
    assert spec.origin is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with importing(spec.origin):
        spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        classes = sorted(key for key, value in vars(module).items() if inspect.isclass(value))
        raise ConfigError(
            f"{path} has no class `{name}`; classes there: {', '.join(classes) or 'none'}",
            hint="name the class in `reader_class_name`",
        )
    return found


class RecordSource:
    """Batches from a user's reader; its position is the number of samples that have been read."""

    def __init__(
        self,
        reader_class: type[Any],
        files: Sequence[Path],
        schema: Schema,
        *,
        held: Sequence[Held] = (),
        options: Mapping[str, Any],
        batch_size: int,
        keep_last: bool,
        require_slots: bool,
        has_binary_label: bool,
        max_bad_records: int | None,
        shuffle: Mapping[str, Any],
        pass_number: int,
        position: str | None,
    ) -> None:
        self._name = reader_class.__name__
        self._held = held
        """Copies of files elsewhere, which stay as long as this is open."""
        self._class = reader_class
        self._of_files = _of_files(files)
        with reading(reader_class, lambda: f"before its first sample{self._of_files}"):
            self._records: Iterator[dict[str, Any]] = iter(_make(reader_class, files, options))
        config = {
            "batch_size": batch_size,
            "keep_last": keep_last,
            "require_slots": require_slots,
            "binary_label": has_binary_label,
            "max_bad_lines": max_bad_records,
            "sources": [(self._name, 0)],
            "shuffle": dict(shuffle),
            "pass": pass_number,
        }
        self._batcher = RecordBatcher(schema, json.dumps(config), position)
        self._ready: list[Batch] = []
        self._is_finished = False
        self._num_given = 0
        self._num_records = num_read(position)
        self._skip(self._num_records)

    def next(self) -> Batch | None:
        """The next batch; None at the end."""
        while not self._ready and not self._is_finished:
            chunk = self._read(_RECORDS_PER_CALL)
            if chunk:
                self._ready = list(reversed(self._batcher.add(chunk)))
                self._count(len(chunk))
            else:
                self._ready = list(reversed(self._batcher.finish()))
                self._is_finished = True
        if self._ready:
            return self._ready.pop()
        self._batcher.check_slots()
        return None

    def absent_slots(self) -> list[str]:
        """Slots whose keys have not occurred so far."""
        return self._batcher.absent_slots()

    def progress(self) -> tuple[int, int]:
        """Nobody knows how long a user's reader goes on."""
        return 0, 0

    def bad_lines(self) -> str:
        """Samples that were skipped, by their numbers."""
        return self._batcher.bad_lines()

    def close(self) -> None:
        """Let the reader's generator clean up."""
        close = getattr(self._records, "close", None)
        if close is not None:
            close()
        for copy in self._held:
            copy.release()

    def _count(self, num_records: int) -> None:
        """Tell, once, of slots that the first samples lack; an error comes only when all have been read."""
        before, self._num_records = self._num_records, self._num_records + num_records
        if before < FEW_SAMPLES <= self._num_records and (absent := self._batcher.absent_slots()):
            warn_of_absent(
                absent, self._name, self._num_records, "an error at the end of the pass if it stays so"
            )

    def _read(self, count: int) -> list[dict[str, Any]]:
        """The next records, `count` at most."""
        chunk: list[dict[str, Any]] = []
        with reading(self._class, lambda: f"after {self._num_given + len(chunk)} samples{self._of_files}"):
            chunk.extend(itertools.islice(self._records, count))
        self._num_given += len(chunk)
        return chunk

    def _skip(self, count: int) -> None:
        skipped = 0
        while skipped < count and (chunk := self._read(min(count - skipped, _RECORDS_PER_CALL))):
            skipped += len(chunk)
        if skipped < count:
            raise DataError(
                f"reader `{self._name}` gave {skipped} samples, but the checkpoint was written after {count}",
                hint="the data has changed since; start a new run",
            )


def num_read(position: str | None) -> int:
    """Samples that were read before a position: a resumed source passes over as many."""
    return 0 if position is None else int(json.loads(position)["lines"])


def _of_files(files: Sequence[Path]) -> str:
    """` of a and b`: the files that a reader was given; nothing where it was given none."""
    named = [f"`{path}`" for path in files[:_MAX_NAMED]]
    if len(files) > _MAX_NAMED:
        named.append(f"{len(files) - _MAX_NAMED} more")
    before, last = ", ".join(named[:-1]), "".join(named[-1:])
    return f" of {before} and {last}" if before else f" of {last}" if last else ""


def _make(
    reader_class: type[Any], files: Sequence[Path], options: Mapping[str, Any]
) -> Iterable[dict[str, Any]]:
    """Call the class with as many of (files, options) as it takes."""
    count = len(inspect.signature(reader_class).parameters)
    arguments = ([str(path) for path in files], dict(options))[:count]
    made: Iterable[dict[str, Any]] = reader_class(*arguments)
    return made
