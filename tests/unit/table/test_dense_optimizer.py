"""Dense optimizers, against torch.optim over the same gradients."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from clickmill._core import DenseOptimizer
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Arrays = list[NDArray[np.float32]]

SIZES = [1, 37, 5_000]

CASES: list[tuple[dict[str, Any], Callable[[list[torch.Tensor]], torch.optim.Optimizer]]] = [
    ({"kind": "sgd"}, lambda params: torch.optim.SGD(params, lr=1.0)),
    (
        {"kind": "sgd", "momentum": 0.9, "weight_decay": 0.1},
        lambda params: torch.optim.SGD(params, lr=1.0, momentum=0.9, weight_decay=0.1),
    ),
    (
        {"kind": "adagrad", "initial_accumulator": 0.1, "weight_decay": 0.1},
        lambda params: torch.optim.Adagrad(params, initial_accumulator_value=0.1, weight_decay=0.1),
    ),
    ({"kind": "adam"}, torch.optim.Adam),
    ({"kind": "adam", "weight_decay": 0.1}, lambda params: torch.optim.Adam(params, weight_decay=0.1)),
    ({"kind": "adam_w"}, torch.optim.AdamW),
    ({"kind": "rms_prop", "weight_decay": 0.1}, lambda params: torch.optim.RMSprop(params, weight_decay=0.1)),
]


def start() -> Arrays:
    random = np.random.default_rng(0)
    return [random.normal(size=size).astype(np.float32) for size in SIZES]


def steps(count: int = 30) -> list[tuple[Arrays, float]]:
    random = np.random.default_rng(1)
    return [
        ([random.normal(size=size).astype(np.float32) for size in SIZES], 0.02 if step < 10 else 0.005)
        for step in range(count)
    ]


@pytest.mark.parametrize(("config", "make"), CASES)
def test_steps_are_those_of_torch(
    config: dict[str, Any], make: Callable[[list[torch.Tensor]], torch.optim.Optimizer]
) -> None:
    expected = [torch.from_numpy(array.copy()).requires_grad_() for array in start()]
    reference = make(expected)
    params, optimizer = start(), DenseOptimizer(json.dumps(config), SIZES)
    for gradients, learning_rate in steps():
        for param, gradient in zip(expected, gradients, strict=True):
            param.grad = torch.from_numpy(gradient)
        reference.param_groups[0]["lr"] = learning_rate
        reference.step()
        optimizer.step(params, params, gradients, learning_rate)
    for found, param in zip(params, expected, strict=True):
        np.testing.assert_allclose(found, param.detach().numpy(), rtol=2e-6, atol=2e-6)


def test_out_of_place_gives_what_in_place_gives_and_leaves_the_source() -> None:
    in_place, source = start(), start()
    first, second = (DenseOptimizer('{"kind": "adam"}', SIZES) for _ in range(2))
    for gradients, learning_rate in steps(5):
        first.step(in_place, in_place, gradients, learning_rate)
        kept = [array.copy() for array in source]
        out = [np.full_like(array, np.nan) for array in source]
        second.step(out, source, gradients, learning_rate)
        for array, copy in zip(source, kept, strict=True):
            np.testing.assert_array_equal(array, copy)
        source = out
    for left, right in zip(in_place, source, strict=True):
        np.testing.assert_array_equal(left, right)


def test_state_carries_an_optimizer_over() -> None:
    whole, params = start(), start()
    first, resumed = (DenseOptimizer('{"kind": "adam"}', SIZES) for _ in range(2))
    sequence = steps(8)
    for gradients, learning_rate in sequence:
        first.step(whole, whole, gradients, learning_rate)
    half = DenseOptimizer('{"kind": "adam"}', SIZES)
    for gradients, learning_rate in sequence[:4]:
        half.step(params, params, gradients, learning_rate)
    resumed.load_state(*half.state())
    for gradients, learning_rate in sequence[4:]:
        resumed.step(params, params, gradients, learning_rate)
    for left, right in zip(whole, params, strict=True):
        np.testing.assert_array_equal(left, right)


def test_scale_and_square_sum_clip_by_the_global_norm() -> None:
    gradients = steps(1)[0][0]
    norm = float(np.sqrt(sum((array.astype(np.float64) ** 2).sum() for array in gradients)))
    assert DenseOptimizer.square_sum(gradients) == pytest.approx(norm**2, rel=1e-9)
    clipped, scaled = start(), start()
    scale = 1.0 / norm
    optimizer = DenseOptimizer('{"kind": "sgd"}', SIZES)
    optimizer.step(scaled, scaled, gradients, 0.5, scale=scale)
    shrunk = [array * np.float32(scale) for array in gradients]
    optimizer.step(clipped, clipped, shrunk, 0.5)
    for left, right in zip(clipped, scaled, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-7)


def test_wrong_sizes_and_overlaps_are_refused_before_anything_is_written() -> None:
    optimizer = DenseOptimizer('{"kind": "sgd"}', [4])
    param = np.ones(4, dtype=np.float32)
    with pytest.raises(ValueError, match="sizes"):
        optimizer.step([param], [param], [np.ones(3, dtype=np.float32)], 0.1)
    buffer = np.ones(6, dtype=np.float32)
    with pytest.raises(Exception, match="already borrowed"):
        optimizer.step([buffer[:4]], [buffer[2:]], [param], 0.1)
    np.testing.assert_array_equal(buffer, np.ones(6))


def test_a_configuration_without_meaning_is_refused() -> None:
    for text in ['{"kind": "adam", "beta1": 1.5}', '{"kind": "lion"}', '{"kind": "sgd", "lr": 1}']:
        with pytest.raises(ConfigError):
            DenseOptimizer(text, [1])
