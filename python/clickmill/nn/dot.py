"""Pairwise dot products of DLRM."""

from __future__ import annotations

import torch


class DotInteraction(torch.nn.Module):
    """Dot products of all pairs of fields, one batched product; `width` numbers per sample."""

    pairs: torch.Tensor

    def __init__(self, num_fields: int) -> None:
        super().__init__()
        row, column = torch.tril_indices(num_fields, num_fields, offset=-1)
        self.register_buffer("pairs", row * num_fields + column, persistent=False)
        self.width = len(row)

    def forward(self, fields_BND: torch.Tensor) -> torch.Tensor:
        """products_BW, pair (i, j) with i > j in the order of rows."""
        products_BNN = torch.bmm(fields_BND, fields_BND.transpose(1, 2))
        return products_BNN.flatten(1).index_select(1, self.pairs)
