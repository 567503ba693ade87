"""What a model asks for, what it is told when it is built, and what it gets with every batch.

Shape letters, in this package and in `clickmill.models`:
  B samples of the batch   F dense features    S pooled slots of a table   D width of a row
  L longest sequence       N fields            W width of a flat input     H hidden units or heads
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickmill.schema.models import Init, UniformInit

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


_SMALL = UniformInit(scale=0.01)


@dataclass(frozen=True)
class TableRequest:
    """A table that a model needs; the configuration may say otherwise about all but its name."""

    name: str
    dim: int
    """Width of a row."""
    init: Init = _SMALL
    """Distribution of the initial rows."""
    optimizer: Mapping[str, Any] | None = None
    """Suggested optimizer in the words of `hyper_parameters.optimizer`; none: that of the run."""
    slots: tuple[str, ...] | None = None
    """Sparse slots whose rows it holds; none: all of them."""


@dataclass(frozen=True)
class TableInputs:
    """What a model sees of one table."""

    dim: int
    slots: tuple[str, ...] = ()
    """Names of the pooled slots, in the order of the second axis of `Features.pooled`."""
    sequences: Mapping[str, int] = field(default_factory=dict)
    """Slots that are not pooled, with the length that they are cut at."""


@dataclass(frozen=True)
class Inputs:
    """What a model is built for."""

    num_dense: int
    tables: Mapping[str, TableInputs]


@dataclass(frozen=True)
class Sequence:
    """Rows of a slot that is not pooled."""

    values_BLD: torch.Tensor
    """Padded after the end of each sequence; what the padding holds means nothing."""
    lengths_B: torch.Tensor


@dataclass(frozen=True)
class Features:
    """One batch, as a model sees it."""

    dense_BF: torch.Tensor
    pooled: Mapping[str, torch.Tensor]
    """Per table: pooled_BSD, one row per sample and pooled slot."""
    sequences: Mapping[tuple[str, str], Sequence] = field(default_factory=dict)
    """Per (table, slot)."""
