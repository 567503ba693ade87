"""Factorisation machine: first order, and the dot product of every pair of fields.

Rendle, "Factorization Machines", ICDM 2010.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill import nn

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class FactorisationMachine(nn.Model):
    """Dense features are fields too: a learnt vector times the value.

    sparse_feature_dim (9): width of a vector.
    """

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        self.fields = nn.Fields(inputs)
        self.first_order = nn.FirstOrder(inputs)

    @classmethod
    def tables(cls, hyper: Mapping[str, Any]) -> tuple[nn.TableRequest, ...]:
        """Vectors and first-order weights."""
        return (nn.embedding_table(hyper), nn.wide_table())

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        logit_B: torch.Tensor = self.first_order(batch) + nn.second_order(self.fields(batch))
        return logit_B
