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
        optimizer.step(params, [gradients], learning_rate)
    for found, param in zip(params, expected, strict=True):
        np.testing.assert_allclose(found, param.detach().numpy(), rtol=2e-6, atol=2e-6)


def test_gradients_in_parts_are_summed() -> None:
    whole, parts = start(), start()
    first, second = (DenseOptimizer('{"kind": "adam"}', SIZES) for _ in range(2))
    for (left, learning_rate), (right, _) in zip(steps(5), steps(10)[5:], strict=True):
        first.step(whole, [[a + b for a, b in zip(left, right, strict=True)]], learning_rate)
        second.step(parts, [left, right], learning_rate)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_state_carries_an_optimizer_over() -> None:
    whole, params = start(), start()
    first, resumed = (DenseOptimizer('{"kind": "adam"}', SIZES) for _ in range(2))
    sequence = steps(8)
    for gradients, learning_rate in sequence:
        first.step(whole, [gradients], learning_rate)
    half = DenseOptimizer('{"kind": "adam"}', SIZES)
    for gradients, learning_rate in sequence[:4]:
        half.step(params, [gradients], learning_rate)
    resumed.load_state(*half.state())
    for gradients, learning_rate in sequence[4:]:
        resumed.step(params, [gradients], learning_rate)
    for left, right in zip(whole, params, strict=True):
        np.testing.assert_array_equal(left, right)


def test_scale_and_square_sum_clip_by_the_global_norm() -> None:
    gradients = steps(1)[0][0]
    norm = float(np.sqrt(sum((array.astype(np.float64) ** 2).sum() for array in gradients)))
    assert DenseOptimizer.square_sum([gradients]) == pytest.approx(norm**2, rel=1e-9)
    clipped, scaled = start(), start()
    scale = 1.0 / norm
    optimizer = DenseOptimizer('{"kind": "sgd"}', SIZES)
    optimizer.step(scaled, [gradients], 0.5, scale=scale)
    shrunk = [array * np.float32(scale) for array in gradients]
    optimizer.step(clipped, [shrunk], 0.5)
    for left, right in zip(clipped, scaled, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-7)


def test_wrong_sizes_are_refused_before_anything_is_written() -> None:
    optimizer = DenseOptimizer('{"kind": "sgd"}', [4])
    param = np.ones(4, dtype=np.float32)
    with pytest.raises(ValueError, match="sizes"):
        optimizer.step([param], [[np.ones(3, dtype=np.float32)]], 0.1)
    with pytest.raises(ValueError, match="sizes"):
        optimizer.step([param], [[param.copy()], [np.ones(3, dtype=np.float32)]], 0.1)
    np.testing.assert_array_equal(param, np.ones(4))
