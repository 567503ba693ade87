"""`hyper_parameters.tables`: what one table does otherwise than the rest."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clickmill._section import (
    Fraction,
    Integer,
    NonNegativeFloat32,
    PositiveCount,
    Section,
    Seed,
)
from clickmill.config.optimizers import SparseOptimizer
from clickmill.schema.models import BareKind, Init


class AlwaysAdmission(Section):
    """Every sign gets a row at its first sight."""

    kind: Literal["always"] = "always"


class CountAdmission(Section):
    """A sign gets a row when it has been seen often enough; until then it reads as the initial row."""

    kind: Literal["count"] = "count"
    at: Annotated[Integer, Field(ge=1, le=255)]
    """The sight that brings the row."""
    sketch_bits: Annotated[Integer, Field(ge=8, le=30)] = 22
    """Sights are counted in a sketch of 2^bits bytes."""


class ProbabilityAdmission(Section):
    """Each sight of a sign brings a row with a fixed probability, decided by a hash, not by chance."""

    kind: Literal["probability"] = "probability"
    p: Annotated[Fraction, Field(gt=0.0)]
    """The probability."""


AdmissionConfig = Annotated[
    AlwaysAdmission | CountAdmission | ProbabilityAdmission, Field(discriminator="kind"), BareKind
]


class ShowClickEviction(Section):
    """Score of a row: show_coefficient * (show - click) + click_coefficient * click."""

    show_coefficient: NonNegativeFloat32 = 0.1
    """Weight of a sight without a click."""
    click_coefficient: NonNegativeFloat32 = 1.0
    """Weight of a click."""
    decay: Annotated[Fraction, Field(gt=0.0)] = 0.98
    """Sights and clicks are multiplied by it at each eviction."""
    threshold: NonNegativeFloat32 = 0.8
    """Rows with a lower score are dropped."""


class EvictionConfig(Section):
    """Which rows are dropped at the end of a pass; rules apply in this order."""

    ttl_steps: Annotated[Integer, Field(ge=1, le=2**32 - 1)] | None = None
    """Rows that no batch has touched for so many batches."""
    show_click: ShowClickEviction | None = None
    """Rows with a low score."""
    max_rows: PositiveCount | None = None
    """Rows beyond this number: the lowest score first, or the longest untouched."""
    max_bytes: PositiveCount | None = None
    """The same, for the bytes of rows and index."""


class TableOverrides(Section):
    """Settings of one table."""

    dim: Annotated[Integer, Field(ge=1, le=4096)] | None = None
    """Width of a row. Absent: what the model asks for."""
    optimizer: SparseOptimizer | None = None
    """Absent: that of all tables."""
    init: Init | None = None
    """Distribution of initial rows."""
    seed: Seed | None = None
    """Seed of initial rows. Absent: from the runner's seed and the table's name."""
    hash_size: PositiveCount | None = None
    """Signs of its slots are taken modulo this number."""
    admission: AdmissionConfig | None = None
    """Absent: every sign gets a row at once."""
    eviction: EvictionConfig | None = None
    """Absent: rows stay."""
    restart_each_pass: bool = False
    """Rows start anew with each pass while the network goes on: a small log can be read several times."""
    bucket_bits: Annotated[Integer, Field(ge=0, le=12)] | None = None
    """The table has 2^bits buckets."""
    statistics: bool = False
    """Keep counts of sights and clicks in every row; `eviction.show_click` needs and implies it."""
