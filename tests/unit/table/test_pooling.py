"""Pooling and its gradients, against torch on the same occurrences.

Letters in shapes: U unique rows, D width, B samples, S slots of the group, P pooled slots, L longest
sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from clickmill._core import Lookup, Table

    MakeTable = Callable[..., Table]

NUM_SAMPLES = 7
NUM_SLOTS = 3
NUM_UNIQUE = 9


class Group(NamedTuple):
    offsets: NDArray[np.uint32]
    inverse: NDArray[np.uint32]

    def of(self, sample: int, slot: int) -> NDArray[np.int64]:
        at = sample * NUM_SLOTS + slot
        return self.inverse[self.offsets[at] : self.offsets[at + 1]].astype(np.int64)


def make_group(*, one_each: bool) -> Group:
    random = np.random.default_rng(4)
    count = NUM_SAMPLES * NUM_SLOTS
    counts = np.ones(count) if one_each else random.integers(0, 5, size=count)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    return Group(offsets, random.integers(0, NUM_UNIQUE, size=int(offsets[-1])).astype(np.uint32))


def make_lookup(make_table: MakeTable, dim: int) -> tuple[Table, Lookup]:
    table = make_table(dim, optimizer={"kind": "sgd"})
    return table, table.lookup(np.arange(NUM_UNIQUE, dtype=np.uint64), train=True)


def pool_one(rows_UD: torch.Tensor, numbers: NDArray[np.int64], pooling: str) -> torch.Tensor:
    if len(numbers) == 0:
        return torch.zeros(rows_UD.shape[1])
    rows_ND = rows_UD[torch.from_numpy(numbers)]
    if pooling == "max":
        return torch.stack([column_N[int(column_N.argmax())] for column_N in rows_ND.T])
    return rows_ND.sum(dim=0) if pooling == "sum" else rows_ND.mean(dim=0)


@pytest.mark.parametrize("dim", [1, 8, 10, 16, 33])
@pytest.mark.parametrize("one_each", [True, False])
@pytest.mark.parametrize(
    "slots",
    [
        [(0, "sum"), (1, "sum"), (2, "sum")],
        [(0, "mean"), (1, "max"), (2, "sum")],
        [(2, "max"), (0, "mean")],
    ],
)
def test_pool_and_unpool_are_those_of_torch(
    make_table: MakeTable, dim: int, one_each: bool, slots: list[tuple[int, str]]
) -> None:
    group = make_group(one_each=one_each)
    _, lookup = make_lookup(make_table, dim)
    rows_UD = torch.from_numpy(lookup.values()).requires_grad_()
    expected_BPD = torch.stack(
        [
            torch.stack([pool_one(rows_UD, group.of(sample, slot), pooling) for slot, pooling in slots])
            for sample in range(NUM_SAMPLES)
        ]
    )
    found_BPD = np.full((NUM_SAMPLES, len(slots), dim), np.nan, dtype=np.float32)
    lookup.pool(group.offsets, group.inverse, NUM_SLOTS, slots, found_BPD)
    np.testing.assert_allclose(found_BPD, expected_BPD.detach().numpy(), rtol=1e-6, atol=1e-7)

    gradient_BPD = np.random.default_rng(8).normal(size=found_BPD.shape).astype(np.float32)
    expected_BPD.backward(torch.from_numpy(gradient_BPD))
    lookup.unpool(group.offsets, group.inverse, NUM_SLOTS, slots, gradient_BPD)
    assert rows_UD.grad is not None
    np.testing.assert_allclose(lookup.gradients(), rows_UD.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("one_each", [True, False])
def test_halves_of_a_batch_give_what_the_whole_gives(make_table: MakeTable, one_each: bool) -> None:
    group = make_group(one_each=one_each)
    slots = [(0, "mean"), (1, "sum"), (2, "max")]
    (_, whole), (_, halves) = make_lookup(make_table, 8), make_lookup(make_table, 8)
    whole_BPD = np.empty((NUM_SAMPLES, 3, 8), dtype=np.float32)
    whole.pool(group.offsets, group.inverse, NUM_SLOTS, slots, whole_BPD)
    halves_BPD = np.empty_like(whole_BPD)
    whole.unpool(group.offsets, group.inverse, NUM_SLOTS, slots, whole_BPD)
    for first, last in [(0, 3), (3, NUM_SAMPLES)]:
        part_BPD = halves_BPD[first:last]
        halves.pool(group.offsets, group.inverse, NUM_SLOTS, slots, part_BPD, first_sample=first)
        halves.unpool(group.offsets, group.inverse, NUM_SLOTS, slots, part_BPD, first_sample=first)
    np.testing.assert_array_equal(halves_BPD, whole_BPD)
    np.testing.assert_array_equal(halves.gradients(), whole.gradients())


def test_a_sequence_is_padded_with_zeros_and_cut_at_its_length(make_table: MakeTable) -> None:
    group = make_group(one_each=False)
    _, lookup = make_lookup(make_table, 5)
    rows_UD = lookup.values()
    out_BLD = np.full((NUM_SAMPLES, 3, 5), np.nan, dtype=np.float32)
    lengths_B = np.zeros(NUM_SAMPLES, dtype=np.int64)
    lookup.sequence(group.offsets, group.inverse, NUM_SLOTS, 1, out_BLD, lengths_B)
    gradient_BLD = np.random.default_rng(2).normal(size=out_BLD.shape).astype(np.float32)
    lookup.unsequence(group.offsets, group.inverse, NUM_SLOTS, 1, gradient_BLD)
    expected_UD = np.zeros_like(rows_UD)
    assert {3, 0} <= {min(3, len(group.of(sample, 1))) for sample in range(NUM_SAMPLES)}
    for sample in range(NUM_SAMPLES):
        numbers = group.of(sample, 1)[:3]
        assert lengths_B[sample] == len(numbers)
        np.testing.assert_array_equal(out_BLD[sample, : len(numbers)], rows_UD[numbers])
        assert (out_BLD[sample, len(numbers) :] == 0).all()
        np.add.at(expected_UD, numbers, gradient_BLD[sample, : len(numbers)])
    np.testing.assert_allclose(lookup.gradients(), expected_UD, rtol=1e-6, atol=1e-7)


def test_the_gradient_of_equal_maxima_goes_to_the_first(make_table: MakeTable) -> None:
    table = make_table(2, spec={"init": {"kind": "zeros"}})
    lookup = table.lookup(np.arange(3, dtype=np.uint64), train=True)
    offsets, inverse = np.array([0, 3], dtype=np.uint32), np.array([2, 0, 1], dtype=np.uint32)
    lookup.unpool(offsets, inverse, 1, [(0, "max")], np.ones((1, 1, 2), dtype=np.float32))
    np.testing.assert_array_equal(lookup.gradients(), [[0, 0], [0, 0], [1, 1]])


@pytest.mark.parametrize(
    ("occurrences", "slots", "shape", "message"),
    [
        (([0, 1, 3], [0, 0]), [(0, "sum")], (2, 1, 4), "ascend from 0 to the 2 occurrences"),
        (([0, 2, 1], [0, 0]), [(0, "sum")], (2, 1, 4), "ascend from 0 to the 2 occurrences"),
        (([0, 2, 1, 2], [0, 0]), [(0, "sum")], (3, 1, 4), "ascend from 0 to the 2 occurrences"),
        (([0, 1, 2], [0, 9]), [(0, "sum")], (2, 1, 4), "names row 9, but there are 9"),
        (([0, 1, 2], [0, 0]), [(1, "sum")], (2, 1, 4), "slot position 1"),
        (([0, 1, 2], [0, 0]), [(0, "sum")], (3, 1, 4), "samples 0 to 3"),
        (([0, 1, 2], [0, 0]), [(0, "sum")], (2, 1, 5), "last axis"),
        (([0, 1, 2], [0, 0]), [(0, "sum")], (2, 2, 4), "middle axis"),
        (([0, 1, 2], [0, 0]), [(0, "median")], (2, 1, 4), "allowed: sum, mean, max"),
        (([], []), [(0, "sum")], (0, 1, 4), "offsets need"),
    ],
)
def test_occurrences_that_do_not_fit_are_refused(
    make_table: MakeTable,
    occurrences: tuple[list[int], list[int]],
    slots: list[tuple[int, str]],
    shape: tuple[int, int, int],
    message: str,
) -> None:
    _, lookup = make_lookup(make_table, 4)
    offsets, inverse = (np.array(numbers, dtype=np.uint32) for numbers in occurrences)
    with pytest.raises(ValueError, match=message):
        lookup.pool(offsets, inverse, 1, slots, np.zeros(shape, dtype=np.float32))
    with pytest.raises(ValueError, match=message):
        lookup.unpool(offsets, inverse, 1, slots, np.zeros(shape, dtype=np.float32))


def test_a_batch_trains_through_pool_unpool_and_apply(make_table: MakeTable) -> None:
    group = make_group(one_each=True)
    table, lookup = make_lookup(make_table, 10)
    before_UD = lookup.values()
    slots = [(slot, "sum") for slot in range(NUM_SLOTS)]
    gradient_BPD = np.ones((NUM_SAMPLES, NUM_SLOTS, 10), dtype=np.float32)
    lookup.unpool(group.offsets, group.inverse, NUM_SLOTS, slots, gradient_BPD)
    expected_UD = before_UD - np.float32(0.25) * lookup.gradients()
    table.apply(lookup, 0.25)
    np.testing.assert_array_equal(table.peek(np.arange(NUM_UNIQUE, dtype=np.uint64)), expected_UD)


def test_observed_shows_and_clicks_decide_who_stays(make_table: MakeTable) -> None:
    rule = {"show_coefficient": 0.1, "click_coefficient": 1.0, "decay": 1.0, "threshold": 0.25}
    table = make_table(2, eviction={"show_click": rule})
    signs = np.arange(3, dtype=np.uint64)
    lookup = table.lookup(signs, train=True)
    # Row 0: 2 shows; row 1: 1 show, 1 click; row 2: 3 shows, 1 click.
    offsets = np.array([0, 2, 2, 4, 4, 5, 6], dtype=np.uint32)
    inverse = np.array([0, 2, 0, 2, 1, 2], dtype=np.uint32)
    lookup.observe(offsets, inverse, 2, np.array([0, 0, 1], dtype=np.float32))
    table.apply(lookup, 0.1)
    table.evict()
    assert table.rows() == 2
    table.pull(signs[1:], train=True)
    assert table.rows() == 2, "rows 1 and 2 have stayed"
