from __future__ import annotations

import pytest

from clickmill.submit.start import StartCommand


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("python -m paddlerec.run -m ./config.yaml", "./config.yaml"),
        ("python -m paddlerec.run -m config.yaml", "config.yaml"),
        ("python3 -m clickmill.run --model config.yaml", "config.yaml"),
        ("python -u -m paddlerec.run -m='a b.yaml'", "a b.yaml"),
        ("clickmill train -m config.yaml --set runner.0.epochs=2", "config.yaml"),
        ("python -m clickmill train --config=c.yaml", "c.yaml"),
        ("cd job && python -m paddlerec.run -m config.yaml && echo -m other.yaml", "config.yaml"),
        ("python -m paddlerec.run -m paddlerec.models.rank.dnn", "paddlerec.models.rank.dnn"),
        ("python -m paddlerec.run && echo -m other.yaml", None),
        ("python -m paddlerec.runner -m config.yaml", None),
        ("sh train.sh -m config.yaml", None),
        ("python -m paddlerec.run -m 'config.yaml", None),
        ("", None),
    ],
)
def test_configuration_of_a_start_command_is_found(text: str, model: str | None) -> None:
    assert StartCommand(text).model == model


def test_nodes_run_clickmill_in_place_of_paddlerec() -> None:
    command = StartCommand("cd a && python -m paddlerec.run -m config.yaml # paddlerec.run")
    assert command.as_ours() == "cd a && python -m clickmill.run -m config.yaml # paddlerec.run"


def test_overrides_travel_with_the_command() -> None:
    command = StartCommand("python -m paddlerec.run -m config.yaml")
    assert command.as_ours(["runner.0.epochs=2", "mode=[a, b]"]) == (
        "python -m clickmill.run --set runner.0.epochs=2 --set 'mode=[a, b]' -m config.yaml"
    )


def test_another_command_stays_as_it_is() -> None:
    assert StartCommand("sh train.sh").as_ours() == "sh train.sh"
