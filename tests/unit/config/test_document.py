from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

from clickmill.config import parse_config
from clickmill.config.document import Place, parse_document


def test_scalars_follow_yaml_1_2() -> None:
    value = parse_document(
        "{a: 1e-3, b: '1e-3', c: on, d: no, e: 010, f: 0x1F, g: 2014-10-21, "
        "h: null, i: ~, j: .5, k: -2, l: 1:30}",
        "x",
    ).value
    assert value == {
        "a": 0.001, "b": "1e-3", "c": "on", "d": "no", "e": 10, "f": 31, "g": "2014-10-21", "h": None,
        "i": None, "j": 0.5, "k": -2, "l": "1:30",
    }  # fmt: skip


def test_numbers_keep_how_they_are_written() -> None:
    value = parse_document("{a: 0012, b: 1.10, c: 1e3, d: 0x1F, e: +7, f: .5, g: 12, h: 1.5}", "x").value
    texts = ["0012", "1.10", "1e3", "0x1F", "+7", ".5", "12", "1.5"]
    for found in (value, copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert [str(item) for item in found.values()] == texts
        assert [f"{item}" for item in found.values()] == texts
        assert list(found.values()) == [12, 1.1, 1000.0, 31, 7, 0.5, 12, 1.5]
        assert json.loads(json.dumps(found)) == found
    assert [type(value[key]) for key in "gh"] == [int, float], "nothing to keep"


def test_quoted_empty_text_is_text_and_nothing_is_null() -> None:
    assert parse_document('a: ""\nb:\n', "x").value == {"a": "", "b": None}


def test_places_of_keys_and_values_are_kept() -> None:
    document = parse_document("a:\n- b: 1\n  c: [x, y]\n", "f")
    assert document.key_place(("a", 0, "c")) == Place("f", 3, 3)
    assert document.value_place(("a", 0, "c", 1)) == Place("f", 3, 10)
    assert document.value_place(("a", 0, "none", 3)) == Place("f", 2, 3)


def test_key_that_is_written_twice_is_noted_and_the_last_wins(small: str) -> None:
    text = small.replace("class: train", "class: train\n  epochs: 2\n  epochs: 3")
    config = parse_config(text)
    assert config.runner[0].epochs == 3
    (note,) = config.notes
    assert (note.key, note.line) == ("runner.0.epochs", 7)
    assert "in line 6 and in line 7" in note.message


def test_anchors_and_merge_keys_work(small: str) -> None:
    text = small.replace("- name: train\n", "- &base\n  name: train\n  epochs: 5\n").replace(
        "dataset:", "- {<<: *base, name: other, epochs: 6}\ndataset:"
    )
    runners = parse_config(text).runner
    assert [(runner.name, runner.epochs, runner.class_name) for runner in runners] == [
        ("train", 5, "train"),
        ("other", 6, "train"),
    ]


def test_alias_stands_where_it_is_written() -> None:
    text = "a: &a {b: 1}\nc: *a\nd:\n- 0\n- *a\ne: {f: &f x, g: *f}\n"
    document = parse_document(text, "f")
    assert document.value == {"a": {"b": 1}, "c": {"b": 1}, "d": [0, {"b": 1}], "e": {"f": "x", "g": "x"}}
    places = [document.value_place(path) for path in (("a",), ("c",), ("d", 1), ("e", "f"), ("e", "g"))]
    assert [(place.line, place.column) for place in places] == [(1, 4), (2, 4), (5, 3), (6, 8), (6, 17)]
    assert document.value_place(("c", "b")).line == 1, "where the value itself is written"


def test_mapping_that_merges_another_stands_where_it_is_written() -> None:
    document = parse_document("a: &a {b: 1, c: 2}\nd:\n  c: 3\n  <<: *a\n", "f")
    assert document.value["d"] == {"b": 1, "c": 3}
    assert document.value_place(("d",)) == Place("f", 3, 3)
    assert document.value_place(("d", "c")) == Place("f", 3, 6)
    assert document.value_place(("d", "b")) == Place("f", 1, 11)


def test_problem_of_an_alias_is_told_at_its_line(problems: Callable[..., Any], small: str) -> None:
    text = small.replace("- name: train", "- name: &word train").replace(
        "class: train", "class: *word\n  epochs: *word"
    )
    assert problems(text)["runner.0.epochs"].line == 6


def test_numbers_may_be_written_as_text(small: str) -> None:
    text = small + "hyper_parameters:\n  optimizer: {class: Adam, learning_rate: '1e-3'}\n  dropout: 1e-1\n"
    hyper = parse_config(text).hyper_parameters
    assert hyper.optimizer.learning_rate == 0.001
    assert hyper.for_model()["dropout"] == 0.1


def test_text_may_be_written_as_a_number(small: str) -> None:
    text = small.replace("name: log", "name: 2026").replace("dataset_name: log", "dataset_name: 2026")
    assert parse_config(text).dataset[0].name == "2026"


def test_hyphens_are_read_as_underscores(small: str) -> None:
    text = small.replace("class: train", "class: train\n  print-interval: 7")
    assert parse_config(text).runner[0].print_interval == 7


def test_json_is_yaml() -> None:
    assert parse_document('{"a": [1, 2.5, "x", true, null]}', "x").value == {"a": [1, 2.5, "x", True, None]}


def test_byte_order_mark_is_ignored(tmp_path, small: str) -> None:
    from clickmill.config import load_config

    file = tmp_path / "config.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + small.encode())
    assert load_config(file).mode == ("train",)
