"""Deep & Cross Network V2: crosses of bounded degree, learnt element by element, with a network.

Wang et al., "DCN V2: Improved Deep & Cross Network and Practical Lessons for Web-scale Learning to Rank
Systems", WWW 2021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from clickmill import nn

if TYPE_CHECKING:
    from collections.abc import Mapping


class DeepCross(nn.Model):
    """Cross layers beside (`parallel`) or before (`stacked`) an MLP.

    num_cross_layers (3), low_rank (0: full matrices), num_experts (4, with low_rank), structure (parallel),
    fc_sizes ([400, 400, 400]), dropout (0), batch_norm (false), sparse_feature_dim (9).
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        read = nn.Hyper(hyper)
        self.flat = nn.FlatInput(inputs)
        width = self.flat.width
        num_layers = read.integer("num_cross_layers", 3)
        rank = read.integer("low_rank", 0, minimum=0)
        self.cross: torch.nn.Module
        if rank == 0:
            self.cross = nn.CrossNetwork(width, num_layers)
        else:
            experts = read.integer("num_experts", 4)
            self.cross = nn.LowRankCrossNetwork(width, num_layers, rank=rank, num_experts=experts)
        self.is_parallel = read.choice("structure", "parallel", ("parallel", "stacked")) == "parallel"
        self.deep = nn.MLP(
            width,
            read.sizes("fc_sizes", (400, 400, 400)),
            batch_norm=read.flag("batch_norm", default=False),
            dropout=read.number("dropout", 0.0, below=1.0),
        )
        self.out = nn.linear(self.deep.width + (width if self.is_parallel else 0), 1)

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        x_BW = self.flat(batch)
        crossed_BW = self.cross(x_BW)
        if self.is_parallel:
            deep = self.deep(x_BW)
            top = torch.cat([crossed_BW.to(deep.dtype), deep], dim=1)
        else:
            top = self.deep(crossed_BW)
        logit_B1: torch.Tensor = self.out(top)
        return logit_B1.squeeze(1)
