"""The schema of a data set: what it says itself, or what goes without saying for its format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.schema.criteo import criteo_schema
from clickmill.schema.libsvm import libsvm_schema
from clickmill.schema.models import SchemaConfig, SparseSlot, TableSpec
from clickmill.schema.movielens import movielens_schema
from clickmill.schema.slots import slots_schema
from clickmill.schema.tables import TableRequest, assign_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickmill.config.dataset import DatasetConfig
    from clickmill.config.hyper import HyperParameters
    from clickmill.config.tables import TableOverrides

_ANY_TABLE = TableSpec(name="embedding", dim=1)


def build_schema(
    dataset: DatasetConfig,
    hyper: HyperParameters,
    requests: Sequence[TableRequest] = (),
    *,
    seed: int = 0,
) -> SchemaConfig:
    """Schema of `dataset` with the tables that a model asks for; checked by the core.

    Without `requests` the slots stay without tables: enough to look at data, not to train.
    """
    schema = _with_hash_size(_described(dataset), hyper.sparse_feature_number)
    overrides: Mapping[str, TableOverrides] = hyper.tables if requests else {}
    assigned = assign_tables(schema, requests or (_ANY_TABLE,), overrides=overrides, seed=seed)
    num_dense = assigned.to_core().num_dense
    if hyper.dense_input_dim is not None and hyper.dense_input_dim != num_dense:
        raise ConfigError(f"has {num_dense} dense inputs, but `dense_input_dim` is {hyper.dense_input_dim}")
    return assigned if requests else schema


def _described(dataset: DatasetConfig) -> SchemaConfig:
    if dataset.schema_ is not None:
        return dataset.schema_
    kind = dataset.sample_format
    if dataset.sparse_slots or dataset.dense_slots:
        return slots_schema(
            dataset.sparse_slots,
            dataset.dense_slots,
            label_slot=dataset.label_slot,
            padding=dataset.padding,
            sign="value" if kind in {"slots", "show_click"} else "hash",
        )
    if kind == "criteo":
        return criteo_schema()
    if kind == "movielens":
        return movielens_schema()
    if kind == "libsvm":
        return libsvm_schema()
    raise ConfigError(f"format `{kind}` does not say what its fields mean; give `schema` or `sparse_slots`")


def _with_hash_size(schema: SchemaConfig, hash_size: int | None) -> SchemaConfig:
    if hash_size is None:
        return schema
    slots = tuple(
        slot.model_copy(update={"hash_size": slot.hash_size or hash_size})
        if isinstance(slot, SparseSlot)
        else slot
        for slot in schema.slots
    )
    return schema.model_copy(update={"slots": slots})
