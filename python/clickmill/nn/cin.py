"""Compressed interaction network of xDeepFM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clickmill.nn.mlp import linear

if TYPE_CHECKING:
    from collections.abc import Sequence


class CompressedInteraction(torch.nn.Module):
    """Feature map h of layer k is a weighted sum of all products x_{k-1}[i] * x_0[j], element by element.

    Every layer's maps are summed over D and put side by side. `width` is the width of the output.
    """

    def __init__(self, num_fields: int, sizes: Sequence[int]) -> None:
        super().__init__()
        num_maps = (num_fields, *sizes[:-1])
        self.layers = torch.nn.ModuleList(
            linear(maps * num_fields, size, init="xavier", bias=False)
            for maps, size in zip(num_maps, sizes, strict=True)
        )
        self.width = sum(sizes)

    def forward(self, fields_BND: torch.Tensor) -> torch.Tensor:
        """pooled_BW."""
        # With D before the fields each layer is one outer product and one matrix product.
        base_BDN = fields_BND.transpose(1, 2).contiguous()
        maps_BDH = base_BDN
        pooled = []
        for layer in self.layers:
            products = maps_BDH.unsqueeze(3) * base_BDN.unsqueeze(2)
            maps_BDH = layer(products.flatten(2))
            pooled.append(maps_BDH.sum(dim=1))
        return torch.cat(pooled, dim=1)
