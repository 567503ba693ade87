"""`format` of a data set: how samples are written. Every text format is read plain, gzip or zstd."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clickmill._section import Section

Delimiter = Annotated[str, Field(min_length=1, max_length=1)]


class CriteoFormat(Section):
    """Criteo's raw log: label, 13 integers, 26 categories, separated by tabs."""

    kind: Literal["criteo"] = "criteo"
    has_label: bool = True
    """`false`: the lines begin with the first integer, as in the contest's test file."""


class SlotsFormat(Section):
    """`click:0 dense_feature:0.05 1:737395 2:3081`: any order, a repeated slot has several values."""

    kind: Literal["slots"] = "slots"


class ShowClickFormat(Section):
    """`show click feasign:slot feasign:slot ...`."""

    kind: Literal["show_click"] = "show_click"


class LibsvmFormat(Section):
    """`label index:value index:value ...`."""

    kind: Literal["libsvm"] = "libsvm"


class CsvFormat(Section):
    """Lines of fields with a header that names them; quoted fields may hold delimiters and line ends."""

    kind: Literal["csv"] = "csv"
    delimiter: Delimiter = ","
    """One character."""
    columns: tuple[str, ...] = ()
    """Names of the fields where the file has no header."""


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
    users: str = ""
    """Path of `users.dat`. Empty: beside the ratings."""
    movies: str = ""
    """Path of `movies.dat`. Empty: beside the ratings."""


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
