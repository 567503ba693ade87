"""Logistic regression on signs: the baseline that everything else has to beat.

McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill import nn
from clickmill.nn.fields import refuse_sequences

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class LogisticRegression(nn.Model):
    """A weight per sign and per dense feature, and a bias. No hyper-parameters."""

    def __init__(self, inputs: nn.Inputs, hyper: Mapping[str, Any]) -> None:
        super().__init__(inputs, hyper)
        refuse_sequences(inputs)
        self.first_order = nn.FirstOrder(inputs)

    @classmethod
    def tables(cls, hyper: Mapping[str, Any]) -> tuple[nn.TableRequest, ...]:
        """First-order weights only."""
        del hyper
        return (nn.wide_table(),)

    def forward(self, batch: nn.Features) -> torch.Tensor:
        """logit_B."""
        logit_B: torch.Tensor = self.first_order(batch)
        return logit_B
