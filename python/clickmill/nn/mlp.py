"""Fully connected layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from clickmill.nn.dropout import Dropout
from clickmill.nn.fused import can_fuse, linear_relus

if TYPE_CHECKING:
    from collections.abc import Sequence

Init = Literal["normal", "xavier", "torch"]


def linear(num_in: int, num_out: int, *, init: Init = "normal", bias: bool = True) -> torch.nn.Linear:
    """A linear layer; `normal` is the seeds' N(0, 1/sqrt(fan_in)), biases zero; `torch` is torch's own."""
    layer = torch.nn.Linear(num_in, num_out, bias=bias)
    if init == "normal":
        torch.nn.init.normal_(layer.weight, std=num_in**-0.5)
    elif init == "xavier":
        torch.nn.init.xavier_normal_(layer.weight)
    if init != "torch" and bias:
        torch.nn.init.zeros_(layer.bias)
    return layer


class MLP(torch.nn.Sequential):
    """`sizes` hidden layers with relu, then `num_out` outputs without (none where `num_out` is 0).

    `width` is the width of the output.
    """

    def __init__(
        self,
        num_in: int,
        sizes: Sequence[int],
        num_out: int = 0,
        *,
        init: Init = "normal",
        batch_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        layers: list[torch.nn.Module] = []
        width = num_in
        for size in sizes:
            layers.append(linear(width, size, init=init))
            if batch_norm:
                layers.append(torch.nn.BatchNorm1d(size))
            layers.append(torch.nn.ReLU(inplace=True))
            if dropout > 0.0:
                layers.append(Dropout(dropout))
            width = size
        if num_out > 0:
            layers.append(linear(width, num_out, init=init))
            width = num_out
        super().__init__(*layers)
        self.width = width

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - torch's name
        """The layers one after the other, linear layers with their relus at once where that can be."""
        current, layers = input, list(self)
        while layers:
            fused = _leading_pairs(layers) if can_fuse(current) else []
            if fused:
                current = linear_relus(current, fused)
                del layers[: 2 * len(fused)]
            else:
                current = layers.pop(0)(current)
        return current


def _leading_pairs(layers: Sequence[torch.nn.Module]) -> list[torch.nn.Linear]:
    """The linear layers that `layers` begin with, as far as each has its relu."""
    found: list[torch.nn.Linear] = []
    for layer, following in zip(layers[::2], layers[1::2], strict=False):
        if type(layer) is not torch.nn.Linear or layer.bias is None or type(following) is not torch.nn.ReLU:
            break
        if _is_watched(layer) or _is_watched(following):
            break
        found.append(layer)
    return found


def _is_watched(module: torch.nn.Module) -> bool:
    """Whether somebody wants to see what goes into it, or comes out."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
