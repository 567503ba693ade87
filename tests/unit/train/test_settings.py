from __future__ import annotations

import pytest

from clickmill import _core
from clickmill.config.hyper import HyperParameters
from clickmill.config.optimizers import SGD, Adagrad, Adam, AdamW, RMSProp
from clickmill.errors import ConfigError
from clickmill.train.settings import dense_optimizer_json, table_optimizer


@pytest.mark.parametrize("optimizer", [SGD(), Adam(), AdamW(), Adagrad(), RMSProp()])
def test_the_core_takes_what_the_configuration_says_of_a_dense_optimizer(optimizer):
    _core.DenseOptimizer(dense_optimizer_json(optimizer, l2=0.5), [3])


@pytest.mark.parametrize("wrong", [{"class": "SGD", "learning_rate": 1e39}, {"class": "SGD", "speed": 1}])
def test_an_optimizer_that_a_model_should_not_suggest_is_an_error_that_names_the_table(wrong):
    with pytest.raises(ConfigError, match=r"wants for table `wide` is not valid: .*(32-bit float|speed)"):
        table_optimizer("wide", HyperParameters(), wrong)
