"""DeepFM: a factorisation machine and a network on the same vectors.

Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction", IJCAI 2017.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill import nn

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class DeepFM(nn.Model):
    """First order, plus pairs of fields, plus MLP; dense features are fields too.

    fc_sizes ([400, 400, 400]), dropout (0), batch_norm (false), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        self.fields = nn.Fields(inputs)
        self.first_order = nn.FirstOrder(inputs)
        self.deep = nn.MLP(
            self.fields.width,
            read.sizes("fc_sizes", (400, 400, 400)),
            1,
            batch_norm=read.flag("batch_norm", default=False),
            dropout=read.number("dropout", 0.0, below=1.0),
        )

    @classmethod
    def tables(cls, hyper: Mapping[str, Any]) -> tuple[nn.TableRequest, ...]:
        """Vectors and first-order weights."""
        return (nn.embedding_table(hyper), nn.wide_table())

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        fields_BND = self.fields(batch)
        deep_B = self.deep(fields_BND.flatten(1)).squeeze(1)
        logit_B: torch.Tensor = self.first_order(batch) + nn.second_order(fields_BND) + deep_B
        return logit_B
