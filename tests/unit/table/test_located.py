from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from clickmill import _core
from clickmill.errors import StateError
from clickmill.schema import criteo_schema
from clickmill.schema.models import TableSpec
from clickmill.schema.tables import assign_tables


@pytest.fixture
def batches(tmp_path: Path) -> list[_core.Batch]:
    path = tmp_path / "log.tsv"
    _core.synth(json.dumps({"path": str(path), "rows": 400}), None)
    schema = assign_tables(criteo_schema(), [TableSpec(name="embedding", dim=5)]).to_core()
    config = {"files": [str(path)], "format": {"kind": "criteo"}, "batch_size": 100}
    reader = _core.Reader(schema, json.dumps(config))
    return list(iter(reader.next, None))


def make_table(**more: object) -> _core.Table:
    config = {"spec": {"name": "embedding", "dim": 5, "seed": 3}, "optimizer": {"kind": "sgd"}, **more}
    return _core.Table(json.dumps(config))


def test_located_rows_read_as_looked_up_ones(batches):
    left, right = make_table(), make_table()
    for batch in batches:
        one = left.fill(left.locate_batch(batch, 0))
        other = right.lookup_batch(batch, 0, True)
        np.testing.assert_array_equal(one.values(), other.values())
    assert left.digest() == right.digest()


def test_rows_that_were_located_before_an_update_are_read_after_it(batches):
    table = make_table()
    first = table.lookup_batch(batches[0], 0, True)
    located = table.locate_batch(batches[1], 0)
    table.begin_step(1)
    first.add_gradients(np.ones((first.num_rows, 5), np.float32))
    table.apply(first, 0.5)
    values = table.fill(located).values()
    np.testing.assert_array_equal(values, table.peek(batches[1].signs(0)))
    shared = np.isin(batches[1].signs(0), batches[0].signs(0))
    assert shared.any()
    assert not shared.all()
    # Initial rows lie within 0.01 of zero; one step of 0.5 moved the shared ones far out of it.
    assert (np.abs(values[shared]) > 0.4).all()
    assert (np.abs(values[~shared]) < 0.02).all()


def test_rows_are_read_once(batches):
    table = make_table()
    located = table.locate_batch(batches[0], 0)
    table.fill(located)
    with pytest.raises(ValueError, match="read before"):
        table.fill(located)


def test_rows_located_before_an_eviction_are_refused(batches):
    table = make_table(eviction={"max_rows": 10})
    located = table.locate_batch(batches[0], 0)
    table.evict()
    with pytest.raises(StateError, match="changed places"):
        table.fill(located)


def test_a_sign_that_is_not_admitted_reads_as_its_initial_row(batches):
    table = make_table(admission={"kind": "count", "at": 2})
    values = table.fill(table.locate_batch(batches[0], 0)).values()
    np.testing.assert_array_equal(values, table.peek(batches[0].signs(0)))
    assert table.rows() == 0
