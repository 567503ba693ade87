from __future__ import annotations

import pytest

from clickmill.config import parse_config
from clickmill.config.checks import run_problems, server_problems
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


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("worker_num: 2, distribute_strategy: sync, clip_norm: 1.0", ["runner.1.clip_norm"]),
        ("worker_num: 1, distribute_strategy: sync, clip_norm: 1.0", []),
        ("worker_num: 2, distribute_strategy: async, clip_norm: 1.0", []),
        ("save_step_interval: 10, save_step_full_interval: 3", ["runner.1.save_step_full_interval"]),
        ("init_model_path: a, max_batches: 3, evict_interval: 2, save_step_interval: 10", []),
    ],
)
def test_what_a_cluster_cannot_do_is_known_before_it_starts(keys: str, found: list[str]) -> None:
    text = CONFIG.replace("CLASS", f"local_cluster_train, {keys}")
    assert [problem.key for problem in run_problems(parse_config(text))] == found
    text = CONFIG.replace("CLASS", f"train, {keys}")
    config = parse_config(text)
    assert run_problems(config) == []
    # As a trainer of a cluster it is asked for the same.
    assert [problem.key for problem in server_problems(config, config.runner[1])] == found


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
