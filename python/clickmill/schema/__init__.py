"""What a sample means: schema models, the schemas of known data sets, and the tables of a model."""

from __future__ import annotations

from clickmill.schema.avazu import avazu_schema
from clickmill.schema.build import build_schema
from clickmill.schema.criteo import criteo_schema
from clickmill.schema.libsvm import libsvm_schema
from clickmill.schema.models import (
    DenseSlot,
    GroupSlot,
    LabelSlot,
    SchemaConfig,
    SparseSlot,
    TableSpec,
    WeightSlot,
)
from clickmill.schema.movielens import movielens_schema
from clickmill.schema.slots import slots_schema
from clickmill.schema.tables import TableRequest, assign_tables

__all__ = [
    "DenseSlot",
    "GroupSlot",
    "LabelSlot",
    "SchemaConfig",
    "SparseSlot",
    "TableRequest",
    "TableSpec",
    "WeightSlot",
    "assign_tables",
    "avazu_schema",
    "build_schema",
    "criteo_schema",
    "libsvm_schema",
    "movielens_schema",
    "slots_schema",
]
