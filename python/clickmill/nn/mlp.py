"""Fully connected layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch

from clickmill.nn.dropout import Dropout
from clickmill.nn.fused import can_fuse, linear_relu

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
        """The layers one after the other, a linear layer with its relu at once where that can be."""
        current, layers = input, list(self)
        while layers:
            layer = layers.pop(0)
            if layers and isinstance(layer, torch.nn.Linear) and _is_fused(layer, layers[0], current):
                del layers[0]
                current = linear_relu(current, layer.weight, layer.bias)
            else:
                current = layer(current)
        return current


def _is_fused(layer: torch.nn.Linear, following: torch.nn.Module, current: torch.Tensor) -> bool:
    """Whether a relu follows, and nobody wants to see what goes from one to the other."""
    is_pair = type(layer) is torch.nn.Linear and layer.bias is not None and type(following) is torch.nn.ReLU
    return (
        is_pair
        and can_fuse(current)
        and not any(
            hooks
            for module in (layer, following)
            for hooks in (
                module._forward_hooks,
                module._forward_pre_hooks,
                module._backward_hooks,
                module._backward_pre_hooks,
            )
        )
    )
