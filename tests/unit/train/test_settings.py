from __future__ import annotations

import pytest

from clickmill import _core
from clickmill.config.optimizers import SGD, Adagrad, Adam, AdamW, RMSProp
from clickmill.train.settings import dense_optimizer_json


@pytest.mark.parametrize("optimizer", [SGD(), Adam(), AdamW(), Adagrad(), RMSProp()])
def test_the_core_takes_what_the_configuration_says_of_a_dense_optimizer(optimizer):
    _core.DenseOptimizer(dense_optimizer_json(optimizer, l2=0.5), [3])
