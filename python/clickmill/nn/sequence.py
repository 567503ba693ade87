"""Sequences: which positions count, and a text-like one turned into a vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clickmill.nn.mlp import linear

if TYPE_CHECKING:
    from clickmill.nn.inputs import Sequence


def sequence_mask(sequence: Sequence) -> torch.Tensor:
    """mask_BL: true up to the length of each sequence."""
    positions_L = torch.arange(sequence.values_BLD.shape[1], device=sequence.lengths_B.device)
    return positions_L < sequence.lengths_B.unsqueeze(1)


class ConvolutionPool(torch.nn.Module):
    """A window of `context` rows mapped to `num_out` numbers, then their maximum over the sequence."""

    def __init__(self, dim: int, num_out: int, *, context: int = 5) -> None:
        super().__init__()
        self.context = context
        self.project = linear(dim * context, num_out)

    def forward(self, sequence: Sequence) -> torch.Tensor:
        """pooled_BH; zero for an empty sequence."""
        mask_BL1 = sequence_mask(sequence).unsqueeze(2)
        before = (self.context - 1) // 2
        padded = torch.nn.functional.pad(
            sequence.values_BLD * mask_BL1, (0, 0, before, self.context - 1 - before)
        )
        windows = padded.unfold(1, self.context, 1).transpose(2, 3).flatten(2)
        # Zero is the least that relu gives, so masked positions cannot win the maximum.
        hidden_BLH = torch.relu(self.project(windows)) * mask_BL1
        return hidden_BLH.amax(dim=1)
