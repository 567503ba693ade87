"""Whatever is in the file: a configuration or a ConfigError, never another exception."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickmill.config import Config, parse_config
from clickmill.errors import ConfigError

from .conftest import SMALL

FULL: dict[str, Any] = {
    **yaml.safe_load(SMALL),
    "hyper_parameters": {
        "optimizer": {"class": "Adam", "learning_rate": 0.1},
        "tables": {"embedding": {"admission": {"kind": "count", "at": 2}}},
        "fc_sizes": [4],
    },
}
FULL["dataset"][0] |= {
    "format": {"kind": "csv", "delimiter": ","},
    "schema": {
        "slots": [
            {"kind": "label", "name": "y", "transform": {"kind": "threshold", "at": 1}},
            {"kind": "sparse", "name": "a", "transform": {"kind": "bucketise", "boundaries": [1, 2]}},
        ]
    },
    "shuffle": "block",
    "validation": {"fraction": 0.1},
}

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in _paths(item, (*path, key)))]


PATHS = [path for path in _paths(FULL) if path]


def _outcome(text: str) -> Config | None:
    try:
        return parse_config(text)
    except ConfigError as error:
        problems = error.problems
    assert problems
    assert all(str(problem) for problem in problems)
    assert json.dumps([problem.to_dict() for problem in problems])
    return None


def test_the_whole_example_is_valid() -> None:
    assert _outcome(yaml.safe_dump(FULL)) is not None


@settings(max_examples=150, deadline=None)
@given(path=st.sampled_from(PATHS), value=VALUES)
def test_any_value_anywhere(path: tuple[Any, ...], value: Any) -> None:
    changed = copy.deepcopy(FULL)
    container = changed
    for key in path[:-1]:
        container = container[key]
    container[path[-1]] = value
    _outcome(yaml.safe_dump(changed, allow_unicode=True))


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_any_part_may_be_absent(path: tuple[Any, ...]) -> None:
    changed = copy.deepcopy(FULL)
    container = changed
    for key in path[:-1]:
        container = container[key]
    del container[path[-1]]
    _outcome(yaml.safe_dump(changed))


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
@example("{? [a] : b}")
@example("a: !!binary x")
@example("!!set {a, b}")
@example("a: &x {b: *x}")
@example("<<: 3")
@example("<<: [{a: 1}, 2]")
@example("%YAML 9.9\n---\na: 1")
@example("? a")
@example("workspace: {workspace}")
@example("runner:\n- &a\n  <<: *a")
def test_any_text(text: str) -> None:
    _outcome(text)
