"""Samples that come from Python: dicts and columns go through the plan that text goes through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from clickmill import _core
from clickmill.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pathlib import Path

SLOTS: list[dict[str, Any]] = [
    {"kind": "label", "name": "click"},
    {"kind": "dense", "name": "price"},
    {"kind": "sparse", "name": "tags", "max_length": 3, "missing": "skip", "tables": ["t"]},
]


def schema(slots: list[dict[str, Any]] = SLOTS) -> _core.Schema:
    return _core.Schema(json.dumps({"version": 1, "slots": slots, "tables": [{"name": "t", "dim": 4}]}))


def batcher(**changes: Any) -> _core.RecordBatcher:
    return _core.RecordBatcher(schema(), json.dumps({"batch_size": 2} | changes))


def from_text(folder: Path, text: str) -> list[_core.Batch]:
    path = folder / "slots.txt"
    path.write_text(text)
    config = {"files": [str(path)], "format": {"kind": "slots"}, "batch_size": 2}
    return list(iter(_core.Reader(schema(), json.dumps(config)).next, None))


def content(batches: list[_core.Batch]) -> list[tuple[Any, ...]]:
    return [
        (
            b.dense.tolist(),
            b.labels.tolist(),
            b.signs(0).tolist(),
            b.inverse(0).tolist(),
            b.offsets(0).tolist(),
        )
        for b in batches
    ]


def test_records_give_the_batches_of_the_same_text(tmp_path: Path) -> None:
    records = batcher()
    made = records.add(
        [
            {"click": True, "price": 0.5, "tags": ["a", b"b"], "unused": object()},
            {"click": 0, "price": None, "tags": None},
            {"click": "1", "price": 3, "tags": 7},
        ]
    )
    assert [batch.num_rows for batch in made] == [2]
    made += records.finish()
    expected = from_text(tmp_path, "click:1 price:0.5 tags:a tags:b\nclick:0\nclick:1 price:3 tags:7\n")
    assert content(made) == content(expected)


def test_a_bad_record_names_its_number_and_key() -> None:
    good = {"click": 1, "price": 1, "tags": "a"}
    with pytest.raises(DataError, match="record 1: key `price`: slot `price`: `nan` is not allowed"):
        batcher().add([good, {"click": 1, "price": float("nan")}])
    with pytest.raises(DataError, match="record 0: key `tags`: has a value of type dict"):
        batcher().add([{"click": 1, "tags": {}}])
    with pytest.raises(DataError, match="record 0: key `click`: label `click` is missing"):
        batcher().add([{"price": 1}])
    with pytest.raises(DataError, match="record 1: key `click`: label `click` has a second value: `2`"):
        batcher().add([good, {"click": [1, 2], "price": 1}])
    with pytest.raises(DataError, match="record 0: is a list, not a dict"):
        batcher().add([[]])


def test_block_shuffle_of_records_is_refused() -> None:
    with pytest.raises(ConfigError, match="records have no blocks"):
        batcher(shuffle={"kind": "block", "block_bytes": 4096, "rows": 1, "seed": 0})


def test_columns_give_the_batches_of_the_same_text(tmp_path: Path) -> None:
    columns = _core.ColumnBatcher(schema(), json.dumps({"batch_size": 2}))
    assert columns.columns() == ["click", "price", "tags"]

    def text(*values: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
        return offsets, np.frombuffer("".join(values).encode(), dtype=np.uint8)

    made = columns.add(
        [
            ("click", *text("1", "0", "1"), None),
            ("price", *text("0.5", "", "3"), None),
            ("tags", *text("a", "b", "7"), np.array([0, 2, 2, 3], dtype=np.int64)),
        ]
    )
    made += columns.finish()
    expected = from_text(tmp_path, "click:1 price:0.5 tags:a tags:b\nclick:0\nclick:1 price:3 tags:7\n")
    assert content(made) == content(expected)


def test_columns_with_offsets_beyond_their_bytes_are_refused() -> None:
    columns = _core.ColumnBatcher(schema(), json.dumps({"batch_size": 2}))
    with pytest.raises(ConfigError, match="column `click`: offsets do not ascend"):
        columns.add([("click", np.array([0, 9], dtype=np.int64), np.zeros(1, dtype=np.uint8), None)])


def test_describe_counts_what_is_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("click,city\n1,Bern\n0,\n0,Bern\n")
    config = {"files": [str(path)], "format": {"kind": "csv"}, "batch_size": 1}
    report = json.loads(_core.describe(json.dumps(config)))
    assert (report["rows"], report["is_partial"]) == (3, False)
    assert report["label"] == {"column": "click", "rate": pytest.approx(1 / 3)}
    city = report["columns"][1]
    assert (city["name"], city["distinct"], city["frequent"]) == ("city", 1, [["Bern", 1.0]])
    assert city["coverage"] == pytest.approx(2 / 3)


def test_fit_schema_fills_in_mean_and_std(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("click,price\n1,2\n0,\n0,6\n")
    config = json.dumps({"files": [str(path)], "format": {"kind": "csv"}, "batch_size": 2})
    slots = [SLOTS[0], {"kind": "dense", "name": "price", "transform": {"kind": "standardise"}}]
    with pytest.raises(DataError, match="slot `price`: standardise has no mean and std yet"):
        _core.Reader(schema(slots), config)
    fitted = _core.fit_schema(schema(slots), config)
    first = _core.Reader(fitted, config).next()
    assert first is not None
    np.testing.assert_allclose(first.dense, [[-1.0], [0.0]])
