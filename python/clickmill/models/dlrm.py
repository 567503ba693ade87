"""DLRM: dense features become one more vector, and all vectors are multiplied in pairs.

Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation Systems", 2019.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from clickmill import nn
from clickmill.errors import ConfigError
from clickmill.nn.fields import refuse_sequences

if TYPE_CHECKING:
    from collections.abc import Mapping


class DLRM(nn.Model):
    """Bottom MLP on dense features, dot products of all pairs, top MLP.

    bottom_sizes ([256, 64]), fc_sizes ([400, 400, 400], the top), dropout (0), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        refuse_sequences(inputs)
        table = inputs.tables[nn.EMBEDDING]
        has_dense = inputs.num_dense > 0
        if len(table.slots) + has_dense < 2:
            raise ConfigError("the model `dlrm` multiplies pairs of fields and has fewer than two")
        sizes = read.sizes("bottom_sizes", (256, 64))
        self.bottom = nn.MLP(inputs.num_dense, (*sizes, table.dim)) if has_dense else None
        self.dot = nn.DotInteraction(len(table.slots) + has_dense)
        self.top = nn.MLP(
            self.dot.width + (table.dim if has_dense else 0),
            read.sizes("fc_sizes", (400, 400, 400)),
            1,
            dropout=read.number("dropout", 0.0, below=1.0),
        )

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        rows_BSD = batch.pooled[nn.EMBEDDING]
        logit_B1: torch.Tensor
        if self.bottom is None:
            logit_B1 = self.top(self.dot(rows_BSD))
        else:
            dense_BD = self.bottom(batch.dense_BF).to(rows_BSD.dtype)
            products_BW = self.dot(torch.cat([dense_BD.unsqueeze(1), rows_BSD], dim=1))
            logit_B1 = self.top(torch.cat([dense_BD.to(products_BW.dtype), products_BW], dim=1))
        return logit_B1.squeeze(1)
