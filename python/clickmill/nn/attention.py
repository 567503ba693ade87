"""Attention: among the fields of a sample, and from a target to a sequence of behaviour."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import torch

from clickmill.nn.mlp import linear
from clickmill.nn.sequence import sequence_mask

if TYPE_CHECKING:
    from collections.abc import Sequence as Sizes

    from clickmill.nn.inputs import Sequence


class FieldAttention(torch.nn.Module):
    """One layer of AutoInt: multi-head self-attention among the fields, a residual, a relu.

    `width` is the width of each field afterwards.
    """

    def __init__(self, dim: int, *, num_heads: int, head_dim: int, is_scaled: bool = False) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scale = head_dim**-0.5 if is_scaled else 1.0
        self.width = num_heads * head_dim
        # Queries, keys, values and the residual in one product.
        self.project = linear(dim, 4 * self.width, init="xavier", bias=False)

    def forward(self, fields_BND: torch.Tensor) -> torch.Tensor:
        """fields_BNW."""
        num_samples, num_fields = fields_BND.shape[:2]
        projected = self.project(fields_BND)
        heads, residual_BNW = projected.split([3 * self.width, self.width], dim=2)
        heads = heads.view(num_samples, num_fields, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = heads.flatten(1, 2).unbind()
        # Written out: torch's fused attention is half as fast on such small matrices, in bfloat16 a tenth.
        score = torch.bmm(query * self.scale, key.transpose(1, 2))
        mixed = torch.bmm(torch.softmax(score, dim=2).to(value.dtype), value)
        mixed_BNHD = mixed.view(num_samples, self.num_heads, num_fields, -1).transpose(1, 2)
        return torch.relu(mixed_BNHD.flatten(2) + residual_BNW)


class ActivationUnit(torch.nn.Module):
    """DIN: how much each item of a behaviour matters to the target, and their sum with these weights.

    The weights come from a small network on the item, the target and their product. They are not normalised
    unless asked: their sum is the strength of the interest. The paper's fourth input, the difference, adds
    nothing that a linear map of item and target cannot do.
    """

    def __init__(self, dim: int, sizes: Sizes[int], *, is_normalised: bool = False) -> None:
        super().__init__()
        self.is_normalised = is_normalised
        self.of_target = linear(dim, sizes[0], init="xavier")
        self.of_item = linear(2 * dim, sizes[0], init="xavier", bias=False)
        rest: list[torch.nn.Module] = [torch.nn.PReLU()]
        for num_in, num_out in itertools.pairwise(sizes):
            rest += [linear(num_in, num_out, init="xavier"), torch.nn.PReLU()]
        self.rest = torch.nn.Sequential(*rest, linear(sizes[-1], 1, init="xavier"))

    def forward(self, target_BD: torch.Tensor, behaviour: Sequence) -> torch.Tensor:
        """interest_BD; zero for an empty behaviour."""
        mask_BL = sequence_mask(behaviour)
        items_BLD = behaviour.values_BLD * mask_BL.unsqueeze(2)
        pairs = torch.cat([items_BLD, items_BLD * target_BD.unsqueeze(1)], dim=2)
        hidden_BLH = self.of_item(pairs) + self.of_target(target_BD).unsqueeze(1)
        weight_BL = self.rest(hidden_BLH).squeeze(2)
        if self.is_normalised:
            # A finite floor: a row of nothing but minus infinity would be NaN.
            weight_BL = torch.softmax(weight_BL.float().masked_fill(~mask_BL, -1e9), dim=1)
        weight_BL = weight_BL * mask_BL
        return torch.bmm(weight_BL.unsqueeze(1).to(items_BLD.dtype), items_BLD).squeeze(1)
