"""Dropout masks depend on the batch alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from clickmill import nn
from clickmill.errors import ConfigError


def network() -> torch.nn.Sequential:
    return torch.nn.Sequential(nn.Dropout(0.5), torch.nn.ReLU(), nn.Dropout(0.25))


def masked(model: torch.nn.Module, seed: int) -> torch.Tensor:
    nn.seed_batch(model, seed)
    out: torch.Tensor = model(torch.ones(64, 32))
    return out


def test_the_same_batch_gets_the_same_masks_whatever_came_before() -> None:
    model = network()
    first = masked(model, 7)
    masked(model, 8)
    torch.rand(100)
    assert torch.equal(masked(model, 7), first)
    assert not torch.equal(masked(model, 8), first)


def test_threads_that_share_a_model_do_not_share_masks() -> None:
    model = network()
    alone = [masked(model, seed) for seed in range(32)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda seed: masked(model, seed), range(32)))
    assert all(torch.equal(left, right) for left, right in zip(alone, together, strict=True))


def test_layers_of_one_pass_have_masks_of_their_own() -> None:
    first, second = nn.Dropout(0.5), nn.Dropout(0.5)
    nn.seed_batch(first, 3)
    assert not torch.equal(first(torch.ones(1_000)), second(torch.ones(1_000)))


def test_survivors_are_scaled_so_that_the_mean_stays() -> None:
    layer = nn.Dropout(0.2)
    nn.seed_batch(layer, 1)
    out = layer(torch.ones(100_000))
    assert set(out.unique().tolist()) == {0.0, 1.25}
    assert out.mean().item() == pytest.approx(1.0, abs=0.01)


def test_an_evaluating_model_drops_nothing() -> None:
    model = network().eval()
    assert torch.equal(masked(model, 1), torch.ones(64, 32))


def test_torch_dropout_of_a_users_model_is_replaced() -> None:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = torch.nn.Dropout(0.3)
            self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.1))

    model = Block()
    assert nn.replace_dropout(model) == 2
    assert isinstance(model.drop, nn.Dropout)
    assert [type(module) for module in model.inner] == [torch.nn.Linear, nn.Dropout]
    assert (model.drop.p, model.inner[1].p) == (0.3, 0.1)
    assert nn.replace_dropout(model) == 0


def test_a_kind_of_dropout_that_cannot_be_replaced_is_named() -> None:
    model = torch.nn.Sequential(torch.nn.AlphaDropout(0.1))
    with pytest.raises(ConfigError, match=r"`0` is a torch.nn.AlphaDropout"):
        nn.replace_dropout(model)


def test_a_probability_of_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="dropout is 1"):
        nn.Dropout(1.0)
