"""`format` of a data set: how samples are written. Every text format is read plain, gzip or zstd."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clickmill._section import Section

Delimiter = Annotated[str, Field(min_length=1, max_length=1)]


class CriteoFormat(Section):
    """Criteo's raw log: label, 13 integers, 26 categories, separated by tabs."""

    kind: Literal["criteo"] = "criteo"
    has_label: bool | None = None
    """`false`: lines begin with the first integer, as in the contest's test file. Absent: both."""


class SlotsFormat(Section):
    """`click:0 dense_feature:0.05 1:737395 2:3081`: any order, a repeated slot has several values."""

    kind: Literal["slots"] = "slots"


class ShowClickFormat(Section):
    """`show click feasign:slot feasign:slot ...`."""

    kind: Literal["show_click"] = "show_click"


class LibsvmFormat(Section):
    """`label index:value index:value ...`."""

    kind: Literal["libsvm"] = "libsvm"
    values: Literal["error", "ignore"] = "error"
    """What a value other than 1 is, where the indices are read as signs (column `features`)."""


class CsvFormat(Section):
    """Lines of fields with a header that names them; quoted fields may hold delimiters, but no line ends."""

    kind: Literal["csv"] = "csv"
    delimiter: Delimiter = ","
    """One character."""


class DelimitedFormat(Section):
    """Lines of fields without a header and without quoting."""

    kind: Literal["delimited"] = "delimited"
    delimiter: Annotated[str, Field(min_length=1)]
    """Text between two fields, one character or more."""
    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the fields."""


class MovielensFormat(Section):
    """MovieLens 1M: `ratings.dat` joined with `users.dat` and `movies.dat`, fields separated by `::`."""

    kind: Literal["movielens"] = "movielens"
    folder: str | None = None
    """Folder of `users.dat` and `movies.dat`. Absent: that of the ratings."""


class ParquetFormat(Section):
    """Parquet files; needs the extra `parquet`."""

    kind: Literal["parquet"] = "parquet"
    columns: tuple[str, ...] = ()
    """Columns to read. Empty: those that the schema needs."""


FormatConfig = (
    CriteoFormat
    | SlotsFormat
    | ShowClickFormat
    | LibsvmFormat
    | CsvFormat
    | DelimitedFormat
    | MovielensFormat
    | ParquetFormat
)
