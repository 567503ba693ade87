"""FinalMLP's parts: gates that give two streams different inputs, and the product that joins the streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clickmill.nn.mlp import MLP, linear

if TYPE_CHECKING:
    from collections.abc import Sequence


class FieldGate(torch.nn.Module):
    """Scales each element of the input by 0 to 2, by what a context says: the rows of some slots, or nothing.

    `context` are positions of fields; without any, one learnt vector is the context of all samples.
    """

    positions: torch.Tensor

    def __init__(self, width: int, dim: int, context: Sequence[int], sizes: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("positions", torch.tensor(context, dtype=torch.long), persistent=False)
        # Not zeros: with biases of zero every relu would stand at its kink and never move.
        self.learnt = torch.nn.Parameter(torch.ones(1, dim)) if not context else None
        self.network = MLP(dim * max(1, len(context)), sizes, width)

    def forward(self, x_BW: torch.Tensor, fields_BND: torch.Tensor) -> torch.Tensor:
        """Same shape as `x_BW`."""
        context: torch.Tensor
        if self.learnt is not None:
            context = self.learnt
        else:
            context = fields_BND.index_select(1, self.positions).flatten(1)
        return x_BW * (2.0 * torch.sigmoid(self.network(context)))


class BilinearFusion(torch.nn.Module):
    """logit = w_x x + w_y y + sum over heads of x_h^T W_h y_h."""

    def __init__(self, width_x: int, width_y: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.of_x = linear(width_x, 1)
        self.of_y = linear(width_y, 1, bias=False)
        weights = torch.empty(num_heads, width_x // num_heads, width_y // num_heads)
        self.weights = torch.nn.Parameter(torch.nn.init.normal_(weights, std=weights.shape[1] ** -0.5))

    def forward(self, x_BW: torch.Tensor, y_BW: torch.Tensor) -> torch.Tensor:
        """logit_B."""
        x_HBW = x_BW.view(x_BW.shape[0], self.num_heads, -1).transpose(0, 1)
        y_HBW = y_BW.view(y_BW.shape[0], self.num_heads, -1).transpose(0, 1)
        joint_B = (torch.bmm(x_HBW, self.weights.to(x_HBW.dtype)) * y_HBW).sum(dim=(0, 2))
        first: torch.Tensor = self.of_x(x_BW) + self.of_y(y_BW)
        return first.squeeze(1) + joint_B
