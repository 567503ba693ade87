"""Linear layers, each with its relu, as one operation.

In fp32 on a CPU torch multiplies with MKL, adds the bias and applies the relu one after the other. oneDNN,
which torch brings too, does all three at once, and its kernels are some percent faster on AMD's processors.
torch itself uses them where it compiles a model, under a private name: where that is missing, everything
goes the usual way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


def _has_onednn() -> bool:
    is_built_in: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return is_built_in and hasattr(torch.ops.mkldnn, "_linear_pointwise")


_HAS_ONEDNN = _has_onednn()


def can_fuse(input_BI: Tensor) -> bool:
    """Whether the fused operation does the same as the layers would."""
    return (
        _HAS_ONEDNN
        and input_BI.dtype == torch.float32
        and input_BI.device.type == "cpu"
        and input_BI.dim() == 2
        and not torch.is_autocast_enabled("cpu")
        and bool(torch.backends.mkldnn.enabled)
        and not torch.compiler.is_compiling()
        and torch._C._get_tracing_state() is None
    )


def linear_relus(input_BI: Tensor, layers: Sequence[torch.nn.Linear]) -> Tensor:
    """Each layer and a relu after it, of what `can_fuse` allows; all have a bias."""
    weights = [weight for layer in layers for weight in (layer.weight, layer.bias)]
    output_BO: Tensor = _LinearRelus.apply(input_BI, *weights)
    return output_BO


def _multiply(input_BI: Tensor, weight_OI: Tensor, bias_O: Tensor | None, activation: str) -> Tensor:
    output_BO: Tensor = torch.ops.mkldnn._linear_pointwise.default(
        input_BI, weight_OI, bias_O, activation, [], ""
    )
    return output_BO


class _LinearRelus(torch.autograd.Function):
    """One node for all layers: each costs tens of microseconds of Python, which other workers wait for."""

    @staticmethod
    def forward(ctx: Any, input_BI: Tensor, *weights: Tensor) -> Tensor:
        outputs = [input_BI]
        for weight_OI, bias_O in zip(weights[::2], weights[1::2], strict=True):
            outputs.append(_multiply(outputs[-1], weight_OI, bias_O, "relu"))
        ctx.save_for_backward(*outputs, *weights[::2])
        return outputs[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        num_layers = len(saved) // 2
        outputs, weights = saved[: num_layers + 1], saved[num_layers + 1 :]
        found: list[Tensor | None] = []
        for index in reversed(range(num_layers)):
            input_BI, output_BO = outputs[index], outputs[index + 1]
            gradient = torch.ops.aten.threshold_backward.default(gradient, output_BO, 0)
            wants_weight, wants_bias = ctx.needs_input_grad[1 + 2 * index : 3 + 2 * index]
            found.append(gradient.sum(0) if wants_bias else None)
            found.append(_multiply(gradient.t(), input_BI.t(), None, "none") if wants_weight else None)
            if not any(ctx.needs_input_grad[: 1 + 2 * index]):
                return (*[None] * (1 + 2 * index), *reversed(found))
            gradient = _multiply(gradient, weights[index].t(), None, "none")
        return (gradient if ctx.needs_input_grad[0] else None, *reversed(found))
