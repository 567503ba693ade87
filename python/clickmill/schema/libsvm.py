"""Schema of libsvm text where the indices are the features: all of them in one multi-valued slot."""

from __future__ import annotations

from clickmill.schema.models import MAX_LENGTH, LabelSlot, SchemaConfig, SparseSlot


def libsvm_schema() -> SchemaConfig:
    """`label`, and `features` with a sign for each index of the line."""
    return SchemaConfig(
        slots=(LabelSlot(name="label"), SparseSlot(name="features", sign="value", max_length=MAX_LENGTH))
    )
