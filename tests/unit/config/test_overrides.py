from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clickmill.config import parse_config
from clickmill.config.overrides import override_place
from clickmill.errors import Problem


@pytest.mark.parametrize("path", ["runner.0.epochs", "runner.train.epochs"])
def test_items_go_by_index_and_by_name(small: str, path: str) -> None:
    assert parse_config(small, overrides=[f"{path}=2"]).runner[0].epochs == 2


def test_sections_are_made_as_needed(small: str) -> None:
    config = parse_config(
        small,
        overrides=[
            "hyper_parameters.optimizer.class=sgd",
            "hyper_parameters.fc_sizes=[64, 32]",
            "runner.0.seed=7",
        ],
    )
    assert config.hyper_parameters.optimizer.class_name == "SGD"
    assert config.hyper_parameters.fc_sizes == (64, 32)
    assert config.runner[0].seed == 7


def test_the_last_override_wins(small: str) -> None:
    assert parse_config(small, overrides=["runner.0.epochs=2", "runner.0.epochs=3"]).runner[0].epochs == 3


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("runner.0.epoch=2", "unknown key"),
        ("runner.0.epochs=two", "whole number"),
        ("runner.5.epochs=2", "no item `5`"),
        ("runner.nobody.epochs=2", "by name: `train`"),
        ("runner.0.name.first=2", "is a single value"),
        ("runner.0.epochs", "must be of the form"),
        ("=2", "must be of the form"),
        ("runner.0.phases=[a", "not valid YAML"),
        ("mode=other", "no runner `other`"),
    ],
)
def test_override_is_checked_like_the_file(
    small: str, problems: Callable[..., dict[str | None, Problem]], override: str, words: str
) -> None:
    (problem,) = problems(small, overrides=[override]).values()
    path, equals, _ = override.partition("=")
    assert problem.place == (f"--set {path}" if path and equals else "--set")
    assert words in problem.message


@pytest.mark.parametrize("override", ["runner.0.epochs=hunter-2", "runner.0.class=hunter-2"])
def test_wrong_value_of_an_override_is_not_repeated(
    small: str, problems: Callable[..., dict[str | None, Problem]], override: str
) -> None:
    (problem,) = problems(small, overrides=[override]).values()
    assert "hunter-2" not in str(problem)


@pytest.mark.parametrize(
    ("override", "place"),
    [
        ("runner.0.epochs=hunter-2", "--set runner.0.epochs"),
        (" runner.0.save-step-path =[hunter-2", "--set runner.0.save-step-path"),
        ("runner={name: hunter-2}", "--set runner"),
        ("运行.0=*hunter-2", "--set 运行.0"),
        ("submit.ak: hunter-2, x=1", "--set submit.ak..."),
        ("{submit: {ak: hunter-2, sk=1}}", "--set"),
        ("submit.ak:hunter-2", "--set"),
        ("hunter-2", "--set"),
        ("=hunter-2", "--set"),
    ],
)
def test_place_of_an_override_is_its_path_and_never_its_value(override: str, place: str) -> None:
    assert override_place(override).file == place


def test_what_an_override_replaced_is_not_blamed_on_the_file(
    small: str, problems: Callable[..., dict[str | None, Problem]]
) -> None:
    text = small + "hyper_parameters:\n  fc_sizes: [8, 8]\n"
    found = problems(text, overrides=["hyper_parameters.fc_sizes=[8, 0]"])["hyper_parameters.fc_sizes.1"]
    assert found.place == "--set hyper_parameters.fc_sizes"


def test_what_a_section_lacks_that_an_override_made_is_blamed_on_the_override(
    small: str, problems: Callable[..., dict[str | None, Problem]]
) -> None:
    override = "hyper_parameters.optimizer.learning_rate=0.5"
    found = problems(small, overrides=[override])["hyper_parameters.optimizer.class"]
    assert found.place == "--set hyper_parameters.optimizer.learning_rate"
    assert found.message.startswith("required key is missing; add `class`, one of `SGD`,")


def test_path_in_the_workspace_needs_no_quotes(small: str) -> None:
    config = parse_config(small, overrides=["dataset.0.data_path={workspace}/log: 1.txt"])
    assert [Path(path).name for path in config.dataset[0].data_path] == ["log: 1.txt"]
