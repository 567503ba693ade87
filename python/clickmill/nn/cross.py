"""Cross networks: each layer multiplies the input once more into what has been found so far."""

from __future__ import annotations

import torch

from clickmill.nn.mlp import linear


class CrossNetwork(torch.nn.Module):
    """DCN-V2 with full matrices: x_{l+1} = x_0 * (W_l x_l + b_l) + x_l."""

    def __init__(self, width: int, num_layers: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(linear(width, width, init="xavier") for _ in range(num_layers))

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Same shape as the input."""
        crossed_BW = x_BW
        for layer in self.layers:
            crossed_BW = torch.addcmul(crossed_BW, x_BW, layer(crossed_BW).to(x_BW.dtype))
        return crossed_BW


class LowRankCrossNetwork(torch.nn.Module):
    """DCN-V2 with a gated mixture of low-rank experts in place of each matrix.

    Expert e of a layer computes x_0 * (U_e tanh(C_e tanh(V_e^T x)) + b); a softmax gate of x weighs the
    experts. All experts of a layer are computed in one batched product.
    """

    def __init__(self, width: int, num_layers: int, *, rank: int, num_experts: int) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.down = _weights(num_layers, num_experts, width, rank)
        self.core = _weights(num_layers, num_experts, rank, rank)
        self.up = _weights(num_layers, num_experts, rank, width)
        self.bias = torch.nn.Parameter(torch.zeros(num_layers, width))
        self.gates = torch.nn.ModuleList(linear(width, num_experts, bias=False) for _ in range(num_layers))

    def forward(self, x_BW: torch.Tensor) -> torch.Tensor:
        """Same shape as the input."""
        crossed_BW = x_BW
        for index in range(self.num_layers):
            gate_BE = torch.softmax(self.gates[index](crossed_BW), dim=1)
            low_EBR = torch.tanh(torch.matmul(crossed_BW, self.down[index]))
            low_EBR = torch.tanh(torch.bmm(low_EBR, self.core[index].to(low_EBR.dtype)))
            # The gates sum to one, so the bias of the experts can be added after them.
            gated_EBR = low_EBR * gate_BE.t().unsqueeze(2)
            mixed_BW = torch.bmm(gated_EBR, self.up[index].to(gated_EBR.dtype)).sum(dim=0)
            crossed_BW = crossed_BW + x_BW * (mixed_BW + self.bias[index])
        return crossed_BW


def _weights(num_layers: int, num_experts: int, num_in: int, num_out: int) -> torch.nn.Parameter:
    weights = torch.empty(num_layers, num_experts, num_in, num_out)
    return torch.nn.Parameter(torch.nn.init.normal_(weights, std=(2.0 / (num_in + num_out)) ** 0.5))
