"""First and second order of a factorisation machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clickmill.errors import ConfigError
from clickmill.nn.model import WIDE

if TYPE_CHECKING:
    from clickmill.nn.inputs import Features, Inputs


class FirstOrder(torch.nn.Module):
    """Logistic regression: a weight per sign, a weight per dense feature, and a bias."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        if WIDE not in inputs.tables or inputs.tables[WIDE].dim != 1:
            raise ConfigError(f"this model needs a table `{WIDE}` of dim 1")
        self.weight_F = torch.nn.Parameter(torch.zeros(inputs.num_dense)) if inputs.num_dense > 0 else None
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def forward(self, batch: Features) -> torch.Tensor:
        """logit_B."""
        logit_B = batch.pooled[WIDE].sum(dim=(1, 2)) + self.bias
        if self.weight_F is not None:
            logit_B = logit_B + (batch.dense_BF * self.weight_F).sum(dim=1)
        return logit_B


def second_order(fields_BND: torch.Tensor) -> torch.Tensor:
    """Sum of the dot products of all pairs of fields, in time linear in their number: logit_B."""
    sum_BD = fields_BND.sum(dim=1)
    return 0.5 * (sum_BD.square().sum(dim=1) - fields_BND.square().sum(dim=(1, 2)))
