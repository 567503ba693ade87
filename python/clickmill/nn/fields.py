"""From the parts of a batch to the one tensor that a network begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clickmill.errors import ConfigError
from clickmill.nn.model import EMBEDDING, WIDE

if TYPE_CHECKING:
    from collections.abc import Collection

    from clickmill.nn.inputs import Features, Inputs


def refuse_sequences(inputs: Inputs, *, known: Collection[str] = ()) -> None:
    """A sequence that a model does not read must not vanish in silence."""
    for table in inputs.tables.values():
        for slot in table.sequences:
            if slot not in known:
                raise ConfigError(
                    f"slot `{slot}` is a sequence, which this model does not read",
                    hint=f"give slot `{slot}` a pooling (sum, mean or max), or use the model `din`",
                )


class FlatInput(torch.nn.Module):
    """Dense features and all pooled rows but the first-order weights, side by side: x_BW."""

    def __init__(self, inputs: Inputs, *, sequences: Collection[str] = ()) -> None:
        super().__init__()
        refuse_sequences(inputs, known=sequences)
        self.tables = tuple(name for name, table in inputs.tables.items() if name != WIDE and table.slots)
        self.num_dense = inputs.num_dense
        self.width = inputs.num_dense + sum(
            len(inputs.tables[name].slots) * inputs.tables[name].dim for name in self.tables
        )
        if self.width == 0:
            raise ConfigError("the model has no inputs", hint="name dense or sparse slots in the dataset")

    def forward(self, batch: Features) -> torch.Tensor:
        """x_BW: dense features first, then the tables in their order."""
        parts = [batch.dense_BF] if self.num_dense else []
        parts.extend(batch.pooled[name].flatten(1) for name in self.tables)
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


class Fields(torch.nn.Module):
    """One vector per field: the pooled rows, and for each dense feature a learnt vector times its value."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        refuse_sequences(inputs)
        if EMBEDDING not in inputs.tables:
            raise ConfigError(
                f"this model needs a table `{EMBEDDING}`; the inputs have {sorted(inputs.tables)}"
            )
        table = inputs.tables[EMBEDDING]
        self.dim = table.dim
        self.num_fields = len(table.slots) + inputs.num_dense
        self.width = self.num_fields * self.dim
        if self.num_fields == 0:
            raise ConfigError("the model has no inputs", hint="name dense or sparse slots in the dataset")
        self.vectors_FD = None
        if inputs.num_dense > 0:
            vectors_FD = torch.nn.init.normal_(torch.empty(inputs.num_dense, self.dim), std=0.01)
            self.vectors_FD = torch.nn.Parameter(vectors_FD)

    def forward(self, batch: Features) -> torch.Tensor:
        """fields_BND: slots first, then dense features."""
        rows_BSD = batch.pooled[EMBEDDING]
        if self.vectors_FD is None:
            return rows_BSD
        return torch.cat([rows_BSD, batch.dense_BF.unsqueeze(2) * self.vectors_FD], dim=1)
