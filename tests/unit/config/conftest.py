from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clickmill.config import parse_config
from clickmill.errors import ConfigError, Problem

SMALL = """\
workspace: "./"
mode: train
runner:
- name: train
  class: train
dataset:
- name: log
  data_path: train.txt
phase:
- name: first
  model: dnn
  dataset_name: log
"""


@pytest.fixture
def small() -> str:
    """The shortest configuration that trains."""
    return SMALL


@pytest.fixture
def problems() -> Callable[..., dict[str | None, Problem]]:
    """Problems of a text, by key."""

    def find(text: str, **options: list[str]) -> dict[str | None, Problem]:
        with pytest.raises(ConfigError) as error:
            parse_config(text, **options)
        assert error.value.problems
        return {problem.key: problem for problem in error.value.problems}

    return find


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
