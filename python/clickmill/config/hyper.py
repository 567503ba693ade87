"""`hyper_parameters`: optimizers, tables, and whatever the model reads; the one section with free keys."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from clickmill._section import (
    Integer,
    NonNegativeFloat32,
    PositiveCount,
    Section,
)
from clickmill.config.optimizers import (
    Adam,
    DenseOptimizer,
    RowWiseAdagrad,
    SparseOptimizer,
    sparse_counterpart,
)
from clickmill.config.tables import TableOverrides

_NOT_FOR_THE_MODEL = {"optimizer", "sparse_optimizer", "tables"}


class HyperParameters(Section):
    """Keys that are not listed here are handed to the model as they are."""

    model_config = ConfigDict(extra="allow")

    optimizer: DenseOptimizer = Adam()
    """Optimizer of the dense parameters; its class alone is enough."""
    sparse_optimizer: SparseOptimizer | None = None
    """Optimizer of the tables. Absent: the counterpart of `optimizer`, or RowWiseAdagrad."""
    tables: dict[str, TableOverrides] = Field(default={})
    """By name of the table: what differs from the rest."""
    reg: NonNegativeFloat32 = 0.0
    """L2 on the dense weights and on the rows that a batch touches."""
    sparse_feature_number: PositiveCount | None = None
    """The classic fixed vocabulary: signs are taken modulo this number. Absent: tables grow."""
    sparse_feature_dim: Annotated[Integer, Field(ge=1, le=4096)] | None = None
    """Width of the rows. Absent: the model's own, 9 for most."""
    fc_sizes: tuple[Annotated[Integer, Field(ge=1, le=1 << 24)], ...] | None = None
    """Widths of the fully connected layers. Absent: the model's own."""
    dense_input_dim: PositiveCount | None = None
    """Number of dense inputs, checked against the schema. Absent: what the schema has."""

    def for_model(self) -> dict[str, Any]:
        """What a model reads: every key but those of optimizers and tables; absent ones are left out."""
        values = self.model_dump(exclude=_NOT_FOR_THE_MODEL, exclude_none=True)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @property
    def free_keys(self) -> dict[str, Any]:
        """Keys that only the model knows."""
        return dict(self.model_extra or {})

    @property
    def table_optimizer(self) -> SparseOptimizer:
        """Optimizer of the tables that have none of their own."""
        if self.sparse_optimizer is not None:
            return self.sparse_optimizer
        if "optimizer" in self.model_fields_set:
            return sparse_counterpart(self.optimizer)
        return RowWiseAdagrad(learning_rate=0.02)
