"""What a table promises: rows, configuration, saves, threads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from clickmill._core import Table
from clickmill.errors import ConfigError, FormatError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakeTable = Callable[..., Table]

SIGNS = np.arange(50, dtype=np.uint64)


def train(table: Table, step: int, signs: np.ndarray[Any, np.dtype[np.uint64]] = SIGNS) -> None:
    table.begin_step(step)
    lookup = table.lookup(signs, train=True)
    lookup.add_gradients(lookup.values() + np.float32(step))
    table.apply(lookup, 0.1)


def test_a_row_is_initial_before_and_after_its_creation(make_table: MakeTable) -> None:
    table = make_table(6)
    absent_UD = table.peek(SIGNS)
    assert table.rows() == 0
    np.testing.assert_array_equal(table.pull(SIGNS, train=True), absent_UD)
    assert table.rows() == len(SIGNS)
    assert len(np.unique(absent_UD)) > absent_UD.size * 0.99
    np.testing.assert_array_equal(make_table(6, bucket_bits=0).peek(SIGNS), absent_UD)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"bucket_bits": 40}, "bucket_bits is 40; allowed: 0 to 12"),
        ({"optimizer": {"kind": "adamax"}}, "unknown variant `adamax`"),
        ({"optimizer": {"kind": "sgd", "lr": 1}}, "unknown field `lr`"),
        ({"optimizer": {"kind": "lazy_adam", "beta1": 1.0}}, "optimizer.beta1 is 1"),
        ({"admission": {"kind": "count", "at": 0}}, "admission.at is 0"),
        ({"admission": {"kind": "probability", "p": 0.0}}, "admission.p is 0"),
        ({"eviction": {"show_click": {"decay": 0.0}}}, "decay is 0"),
        ({"evict": {}}, "unknown field `evict`"),
        ({"spec": {"dim": 0}}, "dim is 0"),
    ],
)
def test_a_configuration_without_meaning_is_refused(
    make_table: MakeTable, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_table(**config)


def test_steps_never_go_back(make_table: MakeTable) -> None:
    table = make_table()
    table.begin_step(5)
    table.begin_step(5)
    with pytest.raises(StateError, match="steps never go back"):
        table.begin_step(4)


def test_adam_wants_to_know_its_step(make_table: MakeTable) -> None:
    table = make_table(4, optimizer={"kind": "lazy_adam"})
    table.pull(SIGNS, train=True)
    with pytest.raises(StateError, match="begin_step"):
        table.push(SIGNS, np.ones((len(SIGNS), 4), dtype=np.float32), 0.1)


def test_a_lookup_for_reading_creates_nothing_and_takes_no_gradients(make_table: MakeTable) -> None:
    table = make_table()
    lookup = table.lookup(SIGNS, train=False)
    lookup.add_gradients(lookup.values())
    with pytest.raises(StateError, match="train=True"):
        table.apply(lookup, 0.1)
    assert table.rows() == 0


def test_a_lookup_is_applied_once_and_by_its_own_table(make_table: MakeTable) -> None:
    table, other = make_table(), make_table()
    lookup = table.lookup(SIGNS, train=True)
    with pytest.raises(StateError, match="another table"):
        other.apply(lookup, 0.1)
    table.apply(lookup, 0.1)
    with pytest.raises(StateError, match="applied"):
        table.apply(lookup, 0.1)


def test_a_learning_rate_that_is_no_number_changes_nothing(make_table: MakeTable) -> None:
    table = make_table()
    lookup = table.lookup(SIGNS, train=True)
    lookup.add_gradients(lookup.values())
    before = table.digest()
    with pytest.raises(ValueError, match="finite"):
        table.apply(lookup, float("nan"))
    assert table.digest() == before
    table.apply(lookup, 0.1)
    assert table.digest() != before


def test_two_runs_give_the_same_bits(make_table: MakeTable) -> None:
    digests = set()
    for bucket_bits in (0, 2, 6):
        table = make_table(16, bucket_bits=bucket_bits)
        for step in range(1, 6):
            train(table, step)
        digests.add(table.digest())
    assert len(digests) == 1


def test_a_chain_of_saves_comes_back(make_table: MakeTable, tmp_path: Path) -> None:
    table = make_table(5, eviction={"ttl_steps": 1}, optimizer={"kind": "adam", "weight_decay": 0.01})
    train(table, 1)
    full = json.loads(table.save(tmp_path / "full"))
    train(table, 2, SIGNS[:5])
    train(table, 3, SIGNS[3:8])
    assert json.loads(table.evict())["evicted_by_ttl"] == 42
    part = json.loads(table.save(tmp_path / "part", base=full["id"]))
    assert (part["rows"], part["tombstones"], part["base"]) == (8, 42, full["id"])
    chain = [tmp_path / "full", tmp_path / "part"]
    loaded = Table.load(chain)
    assert loaded.digest() == table.digest()
    config = {**json.loads(table.config()), "bucket_bits": 4}
    assert Table.load(chain, json.dumps(config)).digest() == table.digest()
    for each in (table, loaded):
        train(each, 9)
    assert loaded.digest() == table.digest()


def test_a_damaged_file_is_refused_with_its_place(make_table: MakeTable, tmp_path: Path) -> None:
    table = make_table()
    train(table, 1)
    path = tmp_path / "table"
    table.save(path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match="checksum") as caught:
        Table.load([path])
    assert caught.value.file == str(path)
    assert 0 < caught.value.offset < len(content)
    assert caught.value.expected != caught.value.found
    with pytest.raises(FileNotFoundError):
        Table.load([tmp_path / "absent"])


def test_stats_count_what_happened(make_table: MakeTable) -> None:
    table = make_table(admission={"kind": "count", "at": 2, "sketch_bits": 12}, eviction={"max_rows": 20})
    train(table, 1)
    train(table, 2)
    table.evict()
    stats = json.loads(table.stats())
    assert stats["rows"] == 20
    assert stats["rows_created"] == 50
    assert stats["rows_evicted"] == 30
    assert stats["sightings_refused"] == 50
    assert stats["gradients_dropped"] == 50
    assert stats["bytes"] == table.bytes()
    assert table.forecast_bytes(2_000_000) > table.forecast_bytes(1_000_000) > 1_000_000 * 16


def test_threads_share_a_table(make_table: MakeTable) -> None:
    table = make_table(8, optimizer={"kind": "sgd"}, bucket_bits=4)
    before_UD = table.pull(SIGNS, train=True)

    def work(_: int) -> None:
        lookup = table.lookup(SIGNS, train=True)
        lookup.add_gradients(np.ones((len(SIGNS), 8), dtype=np.float32))
        table.apply(lookup, 0.5)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(64)))
    np.testing.assert_allclose(table.peek(SIGNS), before_UD - 32, rtol=1e-5)
