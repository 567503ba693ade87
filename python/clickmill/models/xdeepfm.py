"""xDeepFM: explicit interactions of bounded degree, vector by vector, beside a network.

Lian et al., "xDeepFM: Combining Explicit and Implicit Feature Interactions for Recommender Systems",
KDD 2018. The interaction network is the costly part: its time grows with fields squared times `cin_sizes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill import nn
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class XDeepFM(nn.Model):
    """First order, plus compressed interactions, plus MLP.

    cin_sizes ([32, 32]), fc_sizes ([400, 400, 400]), dropout (0), batch_norm (false), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        sizes = read.sizes("cin_sizes", (32, 32))
        if not sizes:
            raise ConfigError(
                "hyper_parameters.cin_sizes is empty", hint="the model `deepfm` has no such layers"
            )
        self.fields = nn.Fields(inputs)
        self.first_order = nn.FirstOrder(inputs)
        self.interaction = nn.CompressedInteraction(self.fields.num_fields, sizes)
        self.of_interaction = nn.linear(self.interaction.width, 1, bias=False)
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
        logit_B1 = self.of_interaction(self.interaction(fields_BND)) + self.deep(fields_BND.flatten(1))
        logit_B: torch.Tensor = self.first_order(batch) + logit_B1.squeeze(1)
        return logit_B
