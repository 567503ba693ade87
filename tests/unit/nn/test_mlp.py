"""The fused layers of an MLP against the same layers one after the other."""

from __future__ import annotations

import pytest
import torch

from clickmill import nn
from clickmill.nn import fused


def gradients(mlp: nn.MLP, input_BI: torch.Tensor) -> list[torch.Tensor]:
    input_BI = input_BI.clone().requires_grad_()
    output = mlp(input_BI)
    wanted = [input_BI, *mlp.parameters()]
    return [output.detach(), *torch.autograd.grad(output.square().sum(), wanted)]


@pytest.fixture
def mlp() -> nn.MLP:
    torch.manual_seed(3)
    mlp = nn.MLP(7, [16, 5], 2)
    for name, parameter in mlp.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return mlp


@pytest.mark.skipif(not fused._HAS_ONEDNN, reason="this torch has no oneDNN")
@pytest.mark.parametrize("num_rows", [1, 64])
def test_fused_layers_do_what_the_layers_do(
    mlp: nn.MLP, num_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    input_BI = torch.randn(num_rows, 7)
    assert fused.can_fuse(input_BI)
    found = gradients(mlp, input_BI)
    monkeypatch.setattr(fused, "_HAS_ONEDNN", False)
    for own, expected in zip(found, gradients(mlp, input_BI), strict=True):
        torch.testing.assert_close(own, expected)


def test_what_cannot_be_fused_goes_the_usual_way(mlp: nn.MLP) -> None:
    assert not fused.can_fuse(torch.zeros(3, 7, dtype=torch.float64))
    assert not fused.can_fuse(torch.zeros(2, 3, 7))
    with torch.autocast("cpu", torch.bfloat16):
        assert not fused.can_fuse(torch.zeros(3, 7))
        assert mlp(torch.zeros(3, 7)).dtype == torch.bfloat16
    assert mlp(torch.zeros(2, 3, 7)).shape == (2, 3, 2)


def test_who_listens_between_two_layers_hears_what_passes(mlp: nn.MLP) -> None:
    heard: list[torch.Tensor] = []
    mlp[0].register_forward_hook(lambda _module, _inputs, output: heard.append(output.clone()))
    mlp(torch.randn(8, 7))
    assert (heard[0] < 0).any()
