"""A data set of the configuration, bound to its files: opened once for each pass."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Protocol

from clickmill._core import Reader, fit_schema
from clickmill.config.formats import MovielensFormat
from clickmill.config.native import reader_config, shuffle_config
from clickmill.data.arriving import Arriving, ArrivingReader, beside, bring_all
from clickmill.data.files import FileRange, find_files, hold_out, sizes_of
from clickmill.data.presence import look_for_slots
from clickmill.data.records import RecordSource, load_reader_class
from clickmill.errors import ConfigError, NoSamplesError
from clickmill.store.remote.fetching import Fetcher
from clickmill.store.remote.opening import open_store
from clickmill.store.remote.store import RemoteFile

if TYPE_CHECKING:
    from pathlib import Path

    from clickmill._core import Arrivals, Batch, Schema
    from clickmill.config.dataset import DatasetConfig
    from clickmill.data.files import FileSize
    from clickmill.data.parquet import ParquetSource


_NAMING_FORMATS = frozenset({"slots", "show_click", "libsvm", "parquet"})
"""Formats whose samples name their columns, so that one may never occur."""


_MOVIELENS_SIDES = ("users.dat", "movies.dat")


class BatchSource(Protocol):
    """One pass over the data."""

    def next(self) -> Batch | None:
        """The next batch; None at the end of the pass."""

    def progress(self) -> tuple[int, int]:
        """Bytes read and bytes in all; (0, 0) where nobody knows."""

    def bad_lines(self) -> str:
        """JSON: how many lines or records were skipped, and the first of them."""

    def absent_slots(self) -> list[str]:
        """Slots that have not occurred so far; empty where nobody requires them."""

    def close(self) -> None:
        """Stop reading."""


class DataSet:
    """Training and validation samples of one `dataset` section.

    `has_binary_label`: the model learns 0 and 1, and any other label is a bad line. `share`: index and count
    of those who read the samples between them, plain text by ranges of bytes and all else by whole files;
    what is fitted or looked for beforehand is looked for in all of them.
    """

    def __init__(
        self,
        config: DatasetConfig,
        base: Path,
        *,
        seed: int = 0,
        shuffle_files: bool = False,
        has_binary_label: bool = False,
        share: tuple[int, int] | None = None,
    ) -> None:
        self.config = config
        self._share = share
        self._has_binary_label = has_binary_label
        self._seed = seed
        self._shuffle_files = shuffle_files
        self._reader_class = (
            load_reader_class(base / config.data_converter, config.reader_class_name)
            if config.data_converter
            else None
        )
        files = find_files(config.data_path, base)
        validation = config.validation
        self.files = [FileRange(path) for path in files]
        self.validation_files: list[FileRange] = []
        if validation is not None and validation.data_path:
            self.validation_files = [FileRange(path) for path in find_files(validation.data_path, base)]
        elif validation is not None:
            if config.data_converter or config.sample_format == "parquet":
                raise ConfigError(
                    f"dataset `{config.name}`: `validation.fraction` needs text files",
                    hint="give `validation.data_path`",
                )
            self.files, self.validation_files = hold_out(files, validation.fraction)

    def fit(self, schema: Schema) -> Schema:
        """The schema with the statistics that its transforms ask for, measured on the training samples."""
        if not _needs_fit(schema):
            return schema
        if self.config.data_converter or self.config.sample_format == "parquet":
            raise ConfigError(
                f"dataset `{self.config.name}`: `standardise` without mean and std needs text files",
                hint="give `mean` and `std` in the schema",
            )
        if not any(isinstance(file.path, RemoteFile) for file in self.files):
            return fit_schema(schema, self._reader_json(self.files, 0, is_training=False))
        arriving = Arriving(self.files, self.fetcher(self.files[0]))
        try:
            text = self._reader_json(self.files, 0, is_training=False, arriving=arriving)
            with arriving.told():
                return beside(lambda: fit_schema(schema, text, arriving.arrivals))
        finally:
            arriving.close()

    def open(self, schema: Schema, pass_number: int, position: str | None = None) -> BatchSource:
        """Training samples of a pass, from `position` on."""
        files = self.files_of(pass_number)
        return self._open(schema, files, pass_number, position, is_training=True)

    def open_part(
        self,
        schema: Schema,
        file: FileRange,
        pass_number: int,
        position: str | None,
        *,
        is_training: bool,
    ) -> BatchSource:
        """Samples of one file, or of a range of one, from `position` on; it is here when this returns."""
        return self._open(schema, [file], pass_number, position, is_training=is_training, is_here=True)

    @property
    def has_lines(self) -> bool:
        """Whether a file may be cut at any line: text, read natively."""
        return self._reader_class is None and self.config.sample_format != "parquet"

    def _dealt(self, files: list[FileRange]) -> list[FileRange]:
        """The whole files of this share; text is shared by its reader."""
        if self._share is None or self.has_lines:
            return files
        index, count = self._share
        return files[index::count]

    def file_sizes(self, pass_number: int) -> list[FileSize]:
        """Names and sizes, as they are now, of what a pass reads, in its order."""
        return sizes_of(self.files_of(pass_number))

    def files_of(self, pass_number: int) -> list[FileRange]:
        """Training files in the order of a pass."""
        files = list(self.files)
        if self._shuffle_files:
            # Seeded with a text, whose bytes Python hashes the same way in every version and process.
            random.Random(f"{self._seed}:{pass_number}").shuffle(files)
        return files

    def open_validation(self, schema: Schema) -> BatchSource | None:
        """Validation samples in their order; None where there are none."""
        if not self.validation_files:
            return None
        return self._open(schema, self.validation_files, 0, None, is_training=False)

    def open_in_order(self, schema: Schema) -> BatchSource:
        """All training samples in their order, for evaluation and inference."""
        return self._open(schema, self.files, 0, None, is_training=False)

    def check_slots(self, schema: Schema, *, to_the_end: bool = True) -> None:
        """Find every slot in the training and in the validation samples; AbsentSlotError where one is not.

        A user's reader may be as slow as training is: it is not read for this, but warns as it goes.
        """
        config = self.config
        is_naming = self._reader_class is None and config.sample_format in _NAMING_FORMATS
        if not is_naming or not config.require_slots:
            return
        for files in (self.files, self.validation_files):
            if files:
                source = self._open_native(schema, files, 0, None, is_training=False, share=None)
                look_for_slots(source, config.name, to_the_end=to_the_end)

    def _open(
        self,
        schema: Schema,
        files: list[FileRange],
        pass_number: int,
        position: str | None,
        *,
        is_training: bool,
        is_here: bool = False,
    ) -> BatchSource:
        files = self._dealt(files)
        if not files:
            raise NoSamplesError(f"dataset `{self.config.name}` has fewer files than readers to share them")
        if self._reader_class is None:
            return self._open_native(
                schema,
                files,
                pass_number,
                position,
                is_training=is_training,
                share=self._share,
                is_here=is_here,
            )
        # Code of the user opens files as it likes: all of them must be here.
        paths, held = bring_all([file.path for file in files])
        try:
            return RecordSource(
                self._reader_class,
                paths,
                schema,
                held=held,
                options=self.config.reader_options,
                pass_number=pass_number,
                position=position,
                **self._record_settings(is_training=is_training),
            )
        except BaseException:
            for copy in held:
                copy.release()
            raise

    def _open_native(
        self,
        schema: Schema,
        files: list[FileRange],
        pass_number: int,
        position: str | None,
        *,
        is_training: bool,
        share: tuple[int, int] | None,
        is_here: bool = False,
    ) -> Reader | ArrivingReader | ParquetSource:
        if self.config.sample_format == "parquet":
            from clickmill.data.parquet import ParquetSource  # noqa: PLC0415 - needs the extra `parquet`

            return ParquetSource(
                [file.path for file in files],
                schema,
                pass_number=pass_number,
                position=position,
                **self._record_settings(is_training=is_training),
            )
        if not any(isinstance(file.path, RemoteFile) for file in files):
            text = self._reader_json(files, pass_number, is_training=is_training, share=share)
            return Reader(schema, text, position)
        arriving = Arriving(files, self.fetcher(files[0]))

        def open_reader(arrivals: Arrivals) -> Reader:
            text = self._reader_json(
                files, pass_number, is_training=is_training, share=share, arriving=arriving
            )
            return Reader(schema, text, position, arrivals)

        return ArrivingReader(arriving, open_reader, is_here=is_here)

    def fetcher(self, first: FileRange) -> Fetcher:
        """Brings files that are elsewhere; with the `first` one what the format reads beside it."""
        config = self.config.format
        if not isinstance(first.path, RemoteFile) or not isinstance(config, MovielensFormat) or config.folder:
            return Fetcher()
        place = first.path.place
        folder = place.at(place.path.rpartition("/")[0])
        found = [open_store(folder).find(folder.child(name)) for name in _MOVIELENS_SIDES]
        return Fetcher(companions={first.path: [file for file in found if file is not None]})

    def _record_settings(self, *, is_training: bool) -> dict[str, Any]:
        """What a source of records is told, be they a user's or those of Parquet files."""
        config = self.config
        return {
            "batch_size": config.batch_size,
            "keep_last": config.keep_last or not is_training,
            "require_slots": config.require_slots,
            "has_binary_label": self._has_binary_label,
            "max_bad_records": config.max_bad_lines,
            "shuffle": shuffle_config(config, self._seed) if is_training else {"kind": "none"},
        }

    def _reader_json(
        self,
        files: list[FileRange],
        pass_number: int,
        *,
        is_training: bool,
        share: tuple[int, int] | None = None,
        arriving: Arriving | None = None,
    ) -> str:
        paths: list[str | dict[str, Any]] = (
            [file.to_json() for file in files] if arriving is None else [*arriving.to_json()]
        )
        config = reader_config(
            self.config,
            paths,
            seed=self._seed,
            pass_number=pass_number,
            is_training=is_training,
            has_binary_label=self._has_binary_label,
            share=share,
        )
        return json.dumps(config)


def _needs_fit(schema: Schema) -> bool:
    slots = json.loads(schema.to_json())["slots"]
    transforms = [slot.get("transform", {}) for slot in slots if slot["kind"] == "dense"]
    return any(each.get("kind") == "standardise" and not each.get("mean") for each in transforms)
