"""The optimizers of a card, run on the processor: the same rules as those of the core, and the same state."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from clickmill import _core
from clickmill.train.gpu.net import DeviceReplicas
from clickmill.train.gpu.optimizer import DeviceOptimizer

RULES = {
    "adam": {"kind": "adam", "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.01},
    "adam_w": {"kind": "adam_w", "beta1": 0.8, "beta2": 0.999, "eps": 1e-6, "weight_decay": 0.1},
    "sgd": {"kind": "sgd", "momentum": 0.0, "weight_decay": 0.0},
    "momentum": {"kind": "sgd", "momentum": 0.9, "weight_decay": 0.02},
    "adagrad": {"kind": "adagrad", "initial_accumulator": 0.1, "eps": 1e-10, "weight_decay": 0.0},
    "rms_prop": {"kind": "rms_prop", "alpha": 0.95, "eps": 1e-8, "weight_decay": 0.01},
}
CPU = torch.device("cpu")


def net(seed: int) -> DeviceReplicas:
    torch.manual_seed(seed)
    return DeviceReplicas(torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Linear(3, 1)), CPU)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RULES)
def test_a_card_updates_as_the_core_does(name):
    text = json.dumps(RULES[name])
    there = net(1)
    arrays = there.copies()
    here = _core.DenseOptimizer(text, there.sizes)
    optimizer = DeviceOptimizer(text, there)
    for step in range(5):
        torch.manual_seed(100 + step)
        there.gradient.normal_()
        gradients = [part.numpy().copy() for part in torch.split(there.gradient, there.sizes)]
        assert optimizer.square_sum([]) == pytest.approx(here.square_sum([gradients]), rel=1e-6)
        here.step(arrays, [gradients], 0.01, 0.5)
        optimizer.step([], [], 0.01, 0.5)
        np.testing.assert_allclose(np.concatenate(there.copies()), np.concatenate(arrays), atol=1e-6)
    made, states = here.state()
    assert optimizer.state()[0] == made == 5
    for own, other in zip(optimizer.state()[1], states, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-6)
    # What the core has saved, a card goes on from.
    again = DeviceOptimizer(text, net(2))
    again.load_state(made, states)
    for own, other in zip(again.state()[1], states, strict=True):
        np.testing.assert_array_equal(own, other)


def test_the_parameters_of_the_net_are_views_of_one_piece():
    replicas = net(3)
    replicas.flat.fill_(0.5)
    assert all(bool((each == 0.5).all()) for each in replicas.model.parameters())
    out = replicas.model(torch.ones(2, 5)).sum()
    out.backward()
    assert replicas.gradient.abs().sum() > 0
    assert replicas.is_finite()
    replicas.flat[0] = torch.nan
    assert not replicas.is_finite()
