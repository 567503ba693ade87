"""Wide & Deep: a linear model that remembers beside a network that generalises.

Cheng et al., "Wide & Deep Learning for Recommender Systems", DLRS 2016. As there, the wide part is best
trained with FTRL, which the model suggests for its table; give it crosses of slots to remember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill import nn

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class WideDeep(nn.Model):
    """First order plus MLP.

    fc_sizes ([400, 400, 400]), dropout (0), batch_norm (false), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        self.wide = nn.FirstOrder(inputs)
        self.flat = nn.FlatInput(inputs)
        self.deep = nn.MLP(
            self.flat.width,
            read.sizes("fc_sizes", (400, 400, 400)),
            1,
            batch_norm=read.flag("batch_norm", default=False),
            dropout=read.number("dropout", 0.0, below=1.0),
        )

    @classmethod
    def tables(cls, hyper: Mapping[str, Any]) -> tuple[nn.TableRequest, ...]:
        """Vectors, and first-order weights with FTRL."""
        return (nn.embedding_table(hyper), nn.wide_table({"class": "FTRL", "learning_rate": 0.05}))

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        logit_B: torch.Tensor = self.wide(batch) + self.deep(self.flat(batch)).squeeze(1)
        return logit_B
