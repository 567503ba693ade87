"""Schema of Criteo's display-advertising log: `label`, `I1`..`I13`, `C1`..`C26`."""

from __future__ import annotations

from typing import Literal

from clickmill.schema.models import (
    DenseSlot,
    DenseTransform,
    LabelSlot,
    Log1pTransform,
    LogSquareTransform,
    MinMaxTransform,
    SchemaConfig,
    Slot,
    SparseSlot,
    StandardiseTransform,
)

CONTINUOUS_MIN = (0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
CONTINUOUS_MAX = (20, 600, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50)
"""Bounds of the classic CTR demo; values beyond them are not clipped."""

NUM_CATEGORIES = 26

Integers = Literal["min_max", "log1p", "standardise", "bucketised"]


def criteo_schema(integers: Integers = "min_max", *, hash_size: int | None = None) -> SchemaConfig:
    """`integers` says what the 13 counts become: scaled floats, or with `bucketised` 13 more sparse slots."""
    counts: list[Slot] = [_count(number, integers, hash_size) for number in range(1, len(CONTINUOUS_MIN) + 1)]
    categories = [
        SparseSlot(name=f"C{number}", hash_size=hash_size) for number in range(1, NUM_CATEGORIES + 1)
    ]
    return SchemaConfig(slots=(LabelSlot(name="label"), *counts, *categories))


def _count(number: int, integers: Integers, hash_size: int | None) -> Slot:
    name = f"I{number}"
    if integers == "bucketised":
        return SparseSlot(name=name, hash_size=hash_size, transform=LogSquareTransform())
    transforms: dict[str, DenseTransform] = {
        "min_max": MinMaxTransform(min=(CONTINUOUS_MIN[number - 1],), max=(CONTINUOUS_MAX[number - 1],)),
        "log1p": Log1pTransform(),
        "standardise": StandardiseTransform(),
    }
    return DenseSlot(name=name, transform=transforms[integers])
