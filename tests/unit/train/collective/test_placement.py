"""Ranks as threads over a channel in memory: what is asked for is what comes back, and sums are joint."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from clickmill.train.collective.placement import Replicated, Sharded
from clickmill.train.collective.rows import Union

WORLD = 3


class Table:
    """Where the ranks of a channel in memory lay down what they say."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(WORLD, timeout=30)
        self.said: list[Any] = [None] * WORLD


class MemoryChannel:
    """The methods of `Channel` that placements use."""

    def __init__(self, table: Table, rank: int) -> None:
        self._table = table
        self.rank, self.world = rank, WORLD

    def _all(self, value: Any) -> list[Any]:
        self._table.said[self.rank] = value
        self._table.barrier.wait()
        found = list(self._table.said)
        self._table.barrier.wait()
        return found

    def gather_numbers(self, numbers: Any) -> np.ndarray:
        return np.array(self._all(list(numbers)), np.float64)

    def gather(self, values: np.ndarray, counts: list[int]) -> list[np.ndarray]:
        found = self._all(values.copy())
        assert [len(each) for each in found] == counts
        return found

    def exchange(self, values: np.ndarray, given: list[int], taken: list[int]) -> list[np.ndarray]:
        found = self._all(np.split(values.copy(), np.cumsum(given)[:-1]))
        mine = [parts[self.rank] for parts in found]
        assert [len(each) for each in mine] == taken
        return mine


def row_of(signs: np.ndarray) -> np.ndarray:
    """Any numbers that tell the sign."""
    return np.stack([signs % 1000, signs // 1000], axis=1).astype(np.float32)


def play(kind: type[Any], rank: int, table: Table) -> Any:
    draw = np.random.default_rng(rank)
    # The last rank has nothing: it has run out of samples.
    sizes = (0, 0) if rank == WORLD - 1 else (40, 7)
    groups = [draw.choice(500, size, replace=False).astype(np.uint64) for size in sizes]
    placement = kind(MemoryChannel(table, rank))
    asks, asked = placement.ask(groups)
    unions = [Union.of(each) for each in asked]
    rows = [lambda to, union=union: row_of(union.signs)[union.positions[to]] for union in unions]
    answered = placement.answer(asks, rows)
    for signs, values in zip(groups, answered, strict=True):
        np.testing.assert_array_equal(values, row_of(signs))
    given = placement.give(asks, [row_of(signs) for signs in groups])
    return groups, [(union.signs, union.add_up(parts)) for union, parts in zip(unions, given, strict=True)]


@pytest.mark.parametrize("kind", [Replicated, Sharded])
def test_rows_come_back_to_who_asked_and_gradients_add_up_where_rows_are(kind):
    table = Table()
    with ThreadPoolExecutor(WORLD) as pool:
        played = list(pool.map(lambda rank: play(kind, rank, table), range(WORLD)))
    for group in range(2):
        occurrences = np.concatenate([groups[group] for groups, _ in played])
        held = [sums[group] for _, sums in played]
        signs = np.concatenate([signs for signs, _ in held])
        distinct = np.unique(occurrences)
        copies = WORLD if kind is Replicated else 1
        np.testing.assert_array_equal(np.sort(signs), np.repeat(distinct, copies))
        for own, sums in held:
            counts = np.array([(occurrences == sign).sum() for sign in own], np.float32)
            np.testing.assert_array_equal(sums, row_of(own) * counts[:, None])
