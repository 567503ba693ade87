"""AutoInt: fields attend to each other, layer by layer.

Song et al., "AutoInt: Automatic Feature Interaction Learning via Self-Attentive Neural Networks", CIKM 2019.
With `fc_sizes` it is the paper's AutoInt+, which has a network beside the attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from clickmill import nn

if TYPE_CHECKING:
    from collections.abc import Mapping


class AutoInt(nn.Model):
    """Self-attention among fields, and an MLP beside it where `fc_sizes` has layers.

    num_attention_layers (2), num_heads (2), head_dim (16), scaled_attention (false), fc_sizes ([]),
    dropout (0), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        self.fields = nn.Fields(inputs)
        num_heads, head_dim = read.integer("num_heads", 2), read.integer("head_dim", 16)
        is_scaled = read.flag("scaled_attention", default=False)
        layers: list[nn.FieldAttention] = []
        for _ in range(read.integer("num_attention_layers", 2)):
            dim = layers[-1].width if layers else self.fields.dim
            layers.append(nn.FieldAttention(dim, num_heads=num_heads, head_dim=head_dim, is_scaled=is_scaled))
        self.attention = torch.nn.Sequential(*layers)
        self.out = nn.linear(self.fields.num_fields * layers[-1].width, 1)
        sizes = read.sizes("fc_sizes", ())
        dropout = read.number("dropout", 0.0, below=1.0)
        self.deep = nn.MLP(self.fields.width, sizes, 1, dropout=dropout) if sizes else None

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        fields_BND = self.fields(batch)
        logit_B1: torch.Tensor = self.out(self.attention(fields_BND).flatten(1))
        if self.deep is not None:
            logit_B1 = logit_B1 + self.deep(fields_BND.flatten(1))
        return logit_B1.squeeze(1)
