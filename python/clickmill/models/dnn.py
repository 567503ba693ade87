"""The seeds' click network: embeddings and dense features, side by side, into fully connected layers.

The demo of the seeds has 400-400-400; PaddleRec's `rank/dnn` is `fc_sizes: [512, 256, 128, 32]`. Their
two-way softmax is here one logit, the difference of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill import nn

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class DeepNetwork(nn.Model):
    """Rows and dense features, concatenated, through an MLP.

    fc_sizes ([400, 400, 400]), dropout (0), batch_norm (false), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        self.flat = nn.FlatInput(inputs)
        self.mlp = nn.MLP(
            self.flat.width,
            read.sizes("fc_sizes", (400, 400, 400)),
            1,
            batch_norm=read.flag("batch_norm", default=False),
            dropout=read.number("dropout", 0.0, below=1.0),
        )

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        logit_B1: torch.Tensor = self.mlp(self.flat(batch))
        return logit_B1.squeeze(1)
