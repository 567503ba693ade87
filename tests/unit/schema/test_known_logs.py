"""The schemas of known data sets, read by the core from lines of that shape."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from clickmill._core import Batch, Reader
from clickmill.schema import (
    SchemaConfig,
    TableSpec,
    assign_tables,
    avazu_schema,
    criteo_schema,
    libsvm_schema,
    movielens_schema,
)
from clickmill.schema.avazu import CATEGORIES


def read(schema: SchemaConfig, format_: dict[str, Any], *files: Path) -> Batch:
    core = assign_tables(schema, [TableSpec(name="embedding", dim=4)]).to_core()
    config = {"files": [str(file) for file in files], "format": format_, "batch_size": 1000}
    batch = Reader(core, json.dumps(config)).next()
    assert batch is not None
    return batch


def signs(schema: SchemaConfig, batch: Batch, slot: str) -> list[tuple[int, ...]]:
    """Signs of a slot, for each sample; all slots are in one group here."""
    names = [each.name for each in schema.sparse]
    position, offsets = names.index(slot), batch.offsets(0)
    unique, inverse = batch.signs(0), batch.inverse(0)
    cells = [row * len(names) + position for row in range(batch.num_rows)]
    return [tuple(int(unique[i]) for i in inverse[offsets[cell] : offsets[cell + 1]]) for cell in cells]


def test_avazu_hours_of_the_day_are_24_and_days_do_not_matter(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["id,click,hour," + ",".join(CATEGORIES), *_avazu_rows()]) + "\n")
    schema = avazu_schema()
    batch = read(schema, {"kind": "csv"}, log)
    hours = [frozenset(cell) for cell in signs(schema, batch, "hour_of_day")]
    assert len(set(hours[:24])) == 24
    assert hours[:24] == hours[24:]
    assert batch.group_keys is not None


def _avazu_rows() -> Iterable[str]:
    for day in ("141021", "141030"):
        for hour in range(24):
            yield f"1,0,{day}{hour:02}," + ",".join("x" for _ in CATEGORIES)


def test_criteo_integers_are_scaled_by_the_constants_of_the_demo(tmp_path: Path) -> None:
    log = tmp_path / "log.tsv"
    integers = ["10", "-3", "", "50", "64000", "500", "1", "5", "5", "1", "1", "1", "5"]
    log.write_text("\t".join(["1", *integers, *("68fd1e64" for _ in range(26))]) + "\n")
    batch = read(criteo_schema(), {"kind": "criteo"}, log)
    assert batch.labels.tolist() == [[1.0]]
    assert batch.dense[0].tolist()[:6] == pytest.approx([0.5, 0.0, 0.0, 1.0, 1.0, 1.0])


def test_movielens_joins_and_scales_the_rating(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text("1::10::5::978300760\n2::10::1::978300761\n")
    (tmp_path / "users.dat").write_text("1::F::1::10::48067\n2::M::56::16::70072\n")
    (tmp_path / "movies.dat").write_text("10::Toy Story (1995)::Animation|Children's|Comedy\n")
    schema = movielens_schema()
    batch = read(schema, {"kind": "movielens"}, tmp_path / "ratings.dat")
    assert batch.labels[:, 0].tolist() == [5.0, -3.0]
    assert [len(cell) for cell in signs(schema, batch, "genres")] == [3, 3]
    assert len(set(signs(schema, batch, "gender"))) == 2
    clicks = read(movielens_schema("click"), {"kind": "movielens"}, tmp_path / "ratings.dat")
    assert clicks.labels[:, 0].tolist() == [1.0, 0.0]


def test_libsvm_indices_are_signs(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("1 3:1 7:1\n0 7:1\n")
    schema = libsvm_schema()
    assert signs(schema, read(schema, {"kind": "libsvm"}, log), "features") == [(3, 7), (7,)]
