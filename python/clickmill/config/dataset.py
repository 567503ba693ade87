"""`dataset`: where samples lie, how they are written and what they mean."""

from __future__ import annotations

from math import prod
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from clickmill._limits import MAX_THREADS
from clickmill._section import Count, Fraction, Integer, Number, PositiveCount, Section, Seed, Texts, Words
from clickmill.config.formats import FormatConfig
from clickmill.schema.models import MAX_DIM, SchemaConfig

MAX_BATCH_SIZE = 1 << 24
MAX_BUFFER_ROWS = 1 << 30
MAX_LINE_BYTES = 1 << 30
"""As in `crates/samples/src/config.rs`: what is refused here is refused with its line."""


class ShuffleConfig(Section):
    """Order of the samples in a pass; every order is a function of the seed and the pass."""

    kind: Literal["none", "buffer", "block"] = "none"
    """`buffer`: samples are drawn from a buffer of `rows`. `block`: blocks of the files are shuffled too."""
    rows: Annotated[Integer, Field(ge=1, le=MAX_BUFFER_ROWS)] = 65_536
    """Samples in the buffer."""
    block_bytes: Annotated[PositiveCount, Field(ge=4096)] = 1 << 20
    """Size of a block, for `block`."""
    seed: Seed | None = None
    """The runner's seed where absent."""


class ValidationConfig(Section):
    """Samples that are scored after each pass and never trained on; `data_path` or `fraction`."""

    data_path: Texts = ()
    """Files, folders, patterns or URLs, as for the data set."""
    fraction: Annotated[Fraction, Field(lt=1.0)] = 0.0
    """This share at the end of the data, by bytes, cut between lines; compressed files stay whole."""

    @model_validator(mode="after")
    def _one_of_two(self) -> ValidationConfig:
        if bool(self.data_path) == bool(self.fraction):
            raise ValueError("give either `data_path` or `fraction`")
        return self


def _bare_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


def _dense_widths(value: Any) -> Any:
    """`"a:13 b:2,3"` as {a: 13, b: 6}: the shape of a slot is flattened."""
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        return value
    widths: dict[str, int] = {}
    for word in words:
        name, colon, shape = str(word).rpartition(":")
        sizes = shape.split(",")
        if not colon or not name or not all(size.isdecimal() for size in sizes):
            raise ValueError(f"`{word}` is not of the form `name:width`, for example `dense_feature:13`")
        if name in widths:
            raise ValueError(f"slot `{name}` is named twice")
        widths[name] = prod(int(size) for size in sizes)
    return widths


class DatasetConfig(Section):
    """One data set."""

    name: str
    """`dataset_name` of a phase refers to it."""
    type: Literal["DataLoader", "QueueDataset"] = "DataLoader"
    """Read for files of older systems: both stream through the same native reader."""
    data_path: Annotated[Texts, Field(min_length=1)]
    """A file, a folder, a pattern such as `day_*.gz`, a URL of one of them, or a list; read in order."""
    format: Annotated[FormatConfig, Field(discriminator="kind"), BeforeValidator(_bare_kind)] | None = None
    """How samples are written; a kind alone is enough. Absent: `slots` with `sparse_slots`, else `criteo`."""
    schema_: SchemaConfig | None = Field(default=None, alias="schema")
    """What a sample means, inline or the path of a file. Absent: from the slots keys, or the format's own."""
    batch_size: Annotated[Integer, Field(ge=1, le=MAX_BATCH_SIZE)] = 1000
    """Samples per batch."""
    shuffle: Annotated[ShuffleConfig, BeforeValidator(_bare_kind)] = ShuffleConfig()
    """Order of the samples; a kind alone is enough."""
    validation: ValidationConfig | None = None
    """Samples held out for evaluation."""
    threads: Annotated[Integer, Field(ge=0, le=MAX_THREADS)] = 0
    """Threads that parse. 0: as many as there are cores."""
    max_bad_lines: Count | None = 0
    """So many lines or records may be unreadable in a pass; one more stops the run. `null`: any number."""
    max_line_bytes: Annotated[Integer, Field(ge=1, le=MAX_LINE_BYTES)] = 16 << 20
    """A longer line is a bad line."""
    require_slots: bool = True
    """A slot that never occurs in the data is an error, told before training where the format allows it."""
    keep_last: bool = True
    """Keep the last batch of a pass where it is not full."""

    sparse_slots: Words = ()
    """Slots of signs, `"click 1 2 3"`. A first one named `click` or `label` is the label."""
    dense_slots: Annotated[
        dict[str, Annotated[Integer, Field(ge=1, le=MAX_DIM)]], BeforeValidator(_dense_widths)
    ] = Field(default={})
    """Slots of floats with their widths, `"dense_feature:13"`."""
    label_slot: str | None = None
    """Names the label where it is not the first of `sparse_slots`; empty: the samples have none."""
    padding: Number = 0.0
    """Stands for an absent value of a dense slot."""

    data_converter: str = ""
    """Path of a file with a user's reader class, which yields dicts."""
    reader_class_name: str = "Reader"
    """Its name in that file."""
    reader_options: dict[str, Any] = Field(default={})
    """Handed to the reader class as they are."""

    @field_validator("sparse_slots")
    @classmethod
    def _no_slot_twice(cls, slots: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({slot for slot in slots if slots.count(slot) > 1})
        if twice:
            raise ValueError(f"named twice: {', '.join(f'`{slot}`' for slot in twice)}")
        return slots

    @model_validator(mode="after")
    def _one_source_of_slots(self) -> DatasetConfig:
        if self.schema_ is not None and (self.sparse_slots or self.dense_slots):
            raise ValueError("`schema` says all about the slots; leave out `sparse_slots` and `dense_slots`")
        return self

    @property
    def sample_format(self) -> str:
        """Kind of the format, also where none was named."""
        if self.format is not None:
            return self.format.kind
        return "slots" if self.sparse_slots else "criteo"
