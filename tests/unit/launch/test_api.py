from __future__ import annotations

import pytest

from clickmill.config import parse_config
from clickmill.config.checks import run_problems
from clickmill.errors import ConfigError
from clickmill.launch.api import Launch
from clickmill.launch.role import Source

CONFIG = """\
workspace: "."
mode: [first, second]
runner:
- {name: first, class: train}
- {name: second, class: CLASS}
dataset:
- {name: log, data_path: train.tsv}
phase:
- {name: only, model: dnn, dataset_name: log}
"""


def test_a_local_cluster_may_be_one_runner_of_several() -> None:
    assert run_problems(parse_config(CONFIG.replace("CLASS", "local_cluster_train"))) == []


def test_a_process_that_becomes_a_role_can_run_nothing_before_it() -> None:
    config = parse_config(CONFIG.replace("CLASS", "cluster_train"))
    trained: list[object] = []
    launch = Launch(
        config,
        Source("config.yaml"),
        lambda runner: [trained.append(runner)],
        lambda runner, seat: [trained.append((runner, seat))],
        environ={},
    )
    with pytest.raises(ConfigError, match=r"config.yaml:5:.*it must be the only runner of `mode`"):
        launch.train()
    assert trained == []


def test_training_from_python_refuses_what_takes_several_processes() -> None:
    from clickmill.train.api import train

    config = parse_config(CONFIG.replace("CLASS", "local_cluster_train"))
    with pytest.raises(
        ConfigError, match="`local_cluster_train` takes more than this process; start it with"
    ):
        train(config)
