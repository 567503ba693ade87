"""`hyper_parameters.tables`: what one table does otherwise than the rest."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clickmill._section import Count, Fraction, NonNegativeNumber, PositiveCount, Section
from clickmill.config.optimizers import SparseOptimizer
from clickmill.schema.models import Init


class AdmissionConfig(Section):
    """When a sign that was never seen gets a row; until then it reads as the initial row."""

    count: Count = 0
    """After it has been seen so often. 0: at once."""
    probability: Annotated[Fraction, Field(gt=0.0)] = 1.0
    """With this probability at each sight, decided by a hash, not by chance."""


class EvictionConfig(Section):
    """Which rows are dropped at the end of a pass."""

    ttl_steps: PositiveCount | None = None
    """Rows that were not touched for so many batches."""
    max_rows: PositiveCount | None = None
    """The worst rows beyond this number."""
    show_weight: NonNegativeNumber = 0.1
    """Weight of a sight in the score of a row."""
    click_weight: NonNegativeNumber = 1.0
    """Weight of a click in the score of a row."""
    decay: Fraction = 0.98
    """Sights and clicks are multiplied by it at each eviction."""
    min_score: NonNegativeNumber = 0.0
    """Rows with a lower score are dropped. 0: none."""


class TableOverrides(Section):
    """Settings of one table."""

    dim: Annotated[PositiveCount, Field(le=4096)] | None = None
    """Width of a row. Absent: what the model asks for."""
    optimizer: SparseOptimizer | None = None
    """Absent: that of all tables."""
    init: Init | None = None
    """Distribution of initial rows."""
    seed: Count | None = None
    """Seed of initial rows. Absent: from the runner's seed and the table's name."""
    hash_size: PositiveCount | None = None
    """Signs of its slots are taken modulo this number."""
    admission: AdmissionConfig | None = None
    """Absent: every sign gets a row at once."""
    eviction: EvictionConfig | None = None
    """Absent: rows stay."""
    bucket_bits: Annotated[Count, Field(le=16)] | None = None
    """The table has 2^bits buckets."""
