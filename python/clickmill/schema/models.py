"""The schema as pydantic models: the same JSON as `crates/types/src/schema` reads and writes.

`_core.Schema` stays the judge of what a schema means; these models give names, defaults and line numbers
to people who write one by hand.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from clickmill._core import Schema
from clickmill._section import Integer, NonNegativeNumber, Number, PositiveCount, Section, Seed, Texts

MAX_LENGTH = 65_536
MAX_DIM = 4_096


def _bare_kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


def _one_number_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, int | float | str) else value


BareKind = BeforeValidator(_bare_kind)
Numbers = Annotated[tuple[Number, ...], BeforeValidator(_one_number_or_many)]


class IdentityTransform(Section):
    """The value as it is."""

    kind: Literal["identity"] = "identity"


class BucketiseTransform(Section):
    """The number of boundaries at or below the value, as the value."""

    kind: Literal["bucketise"] = "bucketise"
    boundaries: Numbers
    """Finite and ascending, at least one."""


class LogSquareTransform(Section):
    """floor(ln(x)^2) above 2, else floor(x): the usual coarse step for counts."""

    kind: Literal["log_square"] = "log_square"


class MinMaxTransform(Section):
    """(x - min) / (max - min), not clipped."""

    kind: Literal["min_max"] = "min_max"
    min: Numbers
    """One number, or one for each element of the slot."""
    max: Numbers
    """One number, or one for each element of the slot."""


class Log1pTransform(Section):
    """sign(x) * ln(1 + |x|)."""

    kind: Literal["log1p"] = "log1p"


class StandardiseTransform(Section):
    """(x - mean) / std; measured on the training data where both are empty."""

    kind: Literal["standardise"] = "standardise"
    mean: Numbers = ()
    """One number, or one for each element of the slot."""
    std: Numbers = ()
    """One number, or one for each element of the slot."""


class ThresholdTransform(Section):
    """1 at or above the threshold, else 0."""

    kind: Literal["threshold"] = "threshold"
    at: Number
    """The threshold."""


class AffineTransform(Section):
    """x * scale + shift."""

    kind: Literal["affine"] = "affine"
    scale: Number
    """Factor."""
    shift: Number
    """Added after scaling."""


class OneOfTransform(Section):
    """1 where the raw text is one of the values, else 0: for labels that are words."""

    kind: Literal["one_of"] = "one_of"
    values: Annotated[Texts, Field(min_length=1)]
    """Texts that mean 1."""


SparseTransform = Annotated[
    IdentityTransform | BucketiseTransform | LogSquareTransform, Field(discriminator="kind"), BareKind
]
DenseTransform = Annotated[
    IdentityTransform | MinMaxTransform | Log1pTransform | StandardiseTransform,
    Field(discriminator="kind"),
    BareKind,
]
LabelTransform = Annotated[
    IdentityTransform | ThresholdTransform | AffineTransform | OneOfTransform,
    Field(discriminator="kind"),
    BareKind,
]


class SparseSlot(Section):
    """A slot of signs."""

    kind: Literal["sparse"] = "sparse"
    name: Annotated[str, Field(min_length=1)]
    """Unique in the schema."""
    column: str | None = None
    """Raw field that it is made from; the slot's name where absent."""
    cross: tuple[str, ...] = ()
    """Two or more sparse slots whose signs are crossed, in place of a raw field."""
    vocabulary: str | None = None
    """Slots of one vocabulary share signs; the slot's name where absent."""
    sign: Literal["hash", "value"] = "hash"
    """`hash`: xxh3 of the raw bytes. `value`: the value is a decimal u64 that already is a sign."""
    hash_size: PositiveCount | None = None
    """The classic fixed-size table: signs are taken modulo this number."""
    transform: SparseTransform = IdentityTransform()
    """What happens to the raw value before it is hashed."""
    separator: str | None = None
    """Text between the values of a multi-valued field; the empty text splits into single bytes."""
    pooling: Literal["sum", "mean", "max", "none"] = "sum"
    """How the rows of several values become one; `none` gives the model the sequence."""
    max_length: Annotated[Integer, Field(ge=1, le=MAX_LENGTH)] = 1
    """Values kept per sample."""
    keep: Literal["first", "last"] = "first"
    """Which values stay when there are more than `max_length`."""
    missing: Literal["sign", "skip"] = "sign"
    """An empty field is the sign of the empty text, or no sign at all (the pooled row is zero)."""
    tables: Texts = ()
    """Tables that hold a row for each sign; the model's own tables where absent."""


class DenseSlot(Section):
    """A slot of `width` floats."""

    kind: Literal["dense"] = "dense"
    name: Annotated[str, Field(min_length=1)]
    """Unique in the schema."""
    column: str | None = None
    """Raw field that it is made from; the slot's name where absent."""
    width: Annotated[Integer, Field(ge=1, le=MAX_DIM)] = 1
    """Number of floats."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """Text between the floats where one field holds them all; absent where the field repeats instead."""
    default: Number = 0.0
    """Stands for an empty or absent value, after the transform."""
    transform: DenseTransform = IdentityTransform()
    """What happens to the raw value."""


class LabelSlot(Section):
    """What the model learns to predict."""

    kind: Literal["label"] = "label"
    name: Annotated[str, Field(min_length=1)]
    """Unique in the schema."""
    column: str | None = None
    """Raw field that it is made from; the slot's name where absent."""
    transform: LabelTransform = IdentityTransform()
    """What happens to the raw value."""


class WeightSlot(Section):
    """The weight of a sample in loss and metrics; one at most."""

    kind: Literal["weight"] = "weight"
    name: Annotated[str, Field(min_length=1)]
    """Unique in the schema."""
    column: str | None = None
    """Raw field that it is made from; the slot's name where absent."""


class GroupSlot(Section):
    """The key by which samples are grouped for GAUC: a user, a session, a request; one at most."""

    kind: Literal["group"] = "group"
    name: Annotated[str, Field(min_length=1)]
    """Unique in the schema."""
    column: str | None = None
    """Raw field that it is made from; the slot's name where absent."""


Slot = Annotated[SparseSlot | DenseSlot | LabelSlot | WeightSlot | GroupSlot, Field(discriminator="kind")]


class ZerosInit(Section):
    """Rows start at zero."""

    kind: Literal["zeros"] = "zeros"


class UniformInit(Section):
    """Every element is uniform in [-scale, scale)."""

    kind: Literal["uniform"] = "uniform"
    scale: NonNegativeNumber = 0.01
    """Half the width of the interval."""


class NormalInit(Section):
    """Every element is normal with mean 0."""

    kind: Literal["normal"] = "normal"
    std: NonNegativeNumber
    """Standard deviation."""


Init = Annotated[ZerosInit | UniformInit | NormalInit, Field(discriminator="kind"), BareKind]


class TableSpec(Section):
    """What a reader of rows must know of a table; how it is trained is no part of the schema."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    """Letters, digits, `_` and `-`."""
    dim: Annotated[Integer, Field(ge=1, le=MAX_DIM)]
    """Width of a row, optimizer state not counted."""
    seed: Seed = 0
    """Initial rows are a pure function of this seed, the sign and the position."""
    init: Init = UniformInit()
    """Distribution of initial rows."""


class SchemaConfig(Section):
    """What a sample means: slots and tables."""

    version: Literal[1] = 1
    """Version of this grammar."""
    slots: Annotated[tuple[Slot, ...], Field(min_length=1)]
    """All slots; their order is the order of the model's inputs."""
    tables: tuple[TableSpec, ...] = ()
    """Tables; those that the model asks for are added."""

    def to_json(self) -> str:
        """The JSON text that `_core.Schema` reads."""
        return self.model_dump_json(by_alias=True, exclude_none=True)

    def to_core(self) -> Schema:
        """Checked by the core. Raises ConfigError, also while a sparse slot has no table yet."""
        return Schema(self.to_json())

    @classmethod
    def from_core(cls, schema: Schema) -> SchemaConfig:
        """The same schema, as models."""
        return cls.model_validate_json(schema.to_json())

    @property
    def sparse(self) -> tuple[SparseSlot, ...]:
        """Sparse slots in order."""
        return tuple(slot for slot in self.slots if isinstance(slot, SparseSlot))

    @property
    def dense(self) -> tuple[DenseSlot, ...]:
        """Dense slots in order."""
        return tuple(slot for slot in self.slots if isinstance(slot, DenseSlot))

    @property
    def labels(self) -> tuple[LabelSlot, ...]:
        """Label slots in order."""
        return tuple(slot for slot in self.slots if isinstance(slot, LabelSlot))
