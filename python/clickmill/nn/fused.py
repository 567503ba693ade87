"""A linear layer and its relu as one operation.

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


def linear_relu(input_BI: Tensor, weight_OI: Tensor, bias_O: Tensor) -> Tensor:
    """relu(input @ weight.T + bias), of what `can_fuse` allows."""
    output_BO: Tensor = _LinearRelu.apply(input_BI, weight_OI, bias_O)
    return output_BO


def _multiply(input_BI: Tensor, weight_OI: Tensor, bias_O: Tensor | None, activation: str) -> Tensor:
    output_BO: Tensor = torch.ops.mkldnn._linear_pointwise(input_BI, weight_OI, bias_O, activation, [], "")
    return output_BO


class _LinearRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input_BI: Tensor, weight_OI: Tensor, bias_O: Tensor) -> Tensor:
        output_BO = _multiply(input_BI, weight_OI, bias_O, "relu")
        ctx.save_for_backward(input_BI, weight_OI, output_BO)
        return output_BO

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BO: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        input_BI, weight_OI, output_BO = ctx.saved_tensors
        wants_input, wants_weight, wants_bias = ctx.needs_input_grad
        gradient_BO = torch.ops.aten.threshold_backward(gradient_BO, output_BO, 0)
        return (
            _multiply(gradient_BO, weight_OI.t(), None, "none") if wants_input else None,
            _multiply(gradient_BO.t(), input_BI.t(), None, "none") if wants_weight else None,
            gradient_BO.sum(0) if wants_bias else None,
        )
