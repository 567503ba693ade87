"""The reader through Python: text files in, read-only columnar batches out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from clickmill import _core
from clickmill.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pathlib import Path

CRITEO_ROW = "\t".join(["1", *map(str, range(13)), *(f"{i:08x}" for i in range(26))])


def criteo_schema() -> _core.Schema:
    slots: list[dict[str, Any]] = [{"kind": "label", "name": "label"}]
    slots += [{"kind": "dense", "name": f"I{i}"} for i in range(1, 14)]
    slots += [{"kind": "sparse", "name": f"C{i}", "tables": ["embedding"]} for i in range(1, 27)]
    tables = [{"name": "embedding", "dim": 8}]
    return _core.Schema(json.dumps({"version": 1, "slots": slots, "tables": tables}))


def config(*paths: Path, **changes: Any) -> str:
    base: dict[str, Any] = {
        "files": [str(path) for path in paths],
        "format": {"kind": "criteo"},
        "batch_size": 4,
    }
    return json.dumps(base | changes)


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


def batches(reader: _core.Reader) -> list[_core.Batch]:
    return list(iter(reader.next, None))


def test_a_batch_holds_the_numbers_of_its_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "day.tsv", *[CRITEO_ROW] * 6)
    first, second = batches(_core.Reader(criteo_schema(), config(path)))
    assert (first.num_rows, second.num_rows) == (4, 2)
    np.testing.assert_array_equal(first.dense, np.tile(np.arange(13, dtype=np.float32), (4, 1)))
    np.testing.assert_array_equal(first.labels, np.ones((4, 1), dtype=np.float32))
    assert first.weights is None
    assert first.group_keys is None
    assert first.num_unique(0) == 26
    np.testing.assert_array_equal(first.offsets(0), np.arange(4 * 26 + 1))
    np.testing.assert_array_equal(first.inverse(0), np.tile(np.arange(26), 4))


def test_arrays_are_read_only_views_that_outlive_the_batch(tmp_path: Path) -> None:
    path = write(tmp_path / "day.tsv", CRITEO_ROW)
    (batch,) = batches(_core.Reader(criteo_schema(), config(path)))
    dense, signs = batch.dense, batch.signs(0)
    del batch
    assert dense[0, 12] == 12
    assert len(set(signs.tolist())) == 26
    with pytest.raises(ValueError, match="read-only"):
        dense[0, 0] = 1


def test_a_group_that_does_not_exist_is_an_index_error(tmp_path: Path) -> None:
    (batch,) = batches(_core.Reader(criteo_schema(), config(write(tmp_path / "day.tsv", CRITEO_ROW))))
    with pytest.raises(IndexError, match="group 1 of a batch with 1 groups"):
        batch.signs(1)


def test_a_bad_line_stops_the_reader_and_names_its_place(tmp_path: Path) -> None:
    bad = CRITEO_ROW.replace("\t3\t", "\tthree\t")
    path = write(tmp_path / "day.tsv", CRITEO_ROW, bad)
    reader = _core.Reader(criteo_schema(), config(path))
    with pytest.raises(DataError, match=r"day\.tsv:2:9: slot `I4`: `three` is not a number"):
        reader.next()
    assert json.loads(reader.bad_lines())["count"] == 1


def test_tolerated_bad_lines_are_counted_and_described(tmp_path: Path) -> None:
    path = write(tmp_path / "day.tsv", "garbage", CRITEO_ROW, "more\tgarbage")
    reader = _core.Reader(criteo_schema(), config(path, max_bad_lines=2))
    assert [batch.num_rows for batch in batches(reader)] == [1]
    log = json.loads(reader.bad_lines())
    assert log["count"] == 2
    assert [(bad["line"], bad["column"]) for bad in log["first"]] == [(1, 8), (3, 13)]
    assert log["first"][0]["reason"] == "expected 40 columns, found 1"


def test_a_resumed_reader_yields_what_would_have_followed(tmp_path: Path) -> None:
    lines = [CRITEO_ROW.replace("00000005", f"{row:08x}") for row in range(50)]
    path = write(tmp_path / "day.tsv", *lines)
    text = config(path, shuffle={"kind": "buffer", "rows": 16, "seed": 3})
    whole = batches(_core.Reader(criteo_schema(), text))
    for index, batch in enumerate(whole):
        rest = batches(_core.Reader(criteo_schema(), text, batch.position))
        assert [b.signs(0).tolist() for b in rest] == [b.signs(0).tolist() for b in whole[index + 1 :]]


def test_an_unknown_key_of_the_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown field `batchsize`"):
        _core.Reader(criteo_schema(), config(tmp_path / "day.tsv", batchsize=1))


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.tsv: No such file"):
        _core.Reader(criteo_schema(), config(tmp_path / "absent.tsv"))


def test_progress_ends_at_the_size_of_the_files(tmp_path: Path) -> None:
    path = write(tmp_path / "day.tsv", *[CRITEO_ROW] * 6)
    reader = _core.Reader(criteo_schema(), config(path))
    assert reader.progress() == (0, path.stat().st_size)
    batches(reader)
    assert reader.progress() == (path.stat().st_size, path.stat().st_size)


def test_a_closed_reader_gives_nothing_more(tmp_path: Path) -> None:
    reader = _core.Reader(criteo_schema(), config(write(tmp_path / "day.tsv", *[CRITEO_ROW] * 99)))
    reader.next()
    reader.close()
    assert reader.next() is None
