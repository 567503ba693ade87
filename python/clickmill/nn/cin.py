"""Compressed interaction network of xDeepFM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


class CompressedInteraction(torch.nn.Module):
    """Feature map h of layer k is a weighted sum of all products x_{k-1}[i] * x_0[j], element by element.

    Every layer's maps are summed over D and put side by side. `width` is the width of the output.
    """

    def __init__(self, num_fields: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList()
        num_maps = num_fields
        for size in sizes:
            # weight[j, i, h], with j of x_0 and i of x_{k-1}.
            weight = torch.empty(num_fields, num_maps, size)
            std = (2.0 / (num_fields * num_maps + size)) ** 0.5
            self.weights.append(torch.nn.Parameter(torch.nn.init.normal_(weight, std=std)))
            num_maps = size
        self.width = sum(sizes)

    def forward(self, fields_BND: torch.Tensor) -> torch.Tensor:
        """pooled_BW."""
        num_samples, num_fields, dim = fields_BND.shape
        # Each element of the vectors is a sample of its own. One product with x_0 and one, per sample, with
        # x_{k-1}: three to five times as fast as the outer product of both, which is slow to differentiate.
        base_XN = fields_BND.transpose(1, 2).reshape(num_samples * dim, num_fields)
        maps_XH = base_XN
        pooled = []
        for weight in self.weights:
            mixed = torch.mm(base_XN, weight.flatten(1)).view(-1, *weight.shape[1:])
            maps_XH = torch.bmm(maps_XH.unsqueeze(1).to(mixed.dtype), mixed).squeeze(1)
            pooled.append(maps_XH.view(num_samples, dim, -1).sum(dim=1))
        return torch.cat(pooled, dim=1)
