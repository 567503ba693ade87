"""Pooling and its gradients, against torch on the same samples.

Letters in shapes: U unique rows, D width, B samples, P pooled slots, L longest sequence.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
import torch

from clickmill._core import Batch, GroupLayout, RecordBatcher, Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from clickmill._core import Lookup, Table

    MakeTable = Callable[..., Table]
    Cells = list[list[list[int]]]

NUM_SAMPLES = 7
NUM_SLOTS = 3
NUM_SIGNS = 9


class Samples(NamedTuple):
    """A batch and the signs that it was made from, by sample and slot."""

    batch: Batch
    layout: GroupLayout
    cells: Cells

    def of(self, sample: int, slot: int) -> NDArray[np.int64]:
        """Numbers of the rows of one cell."""
        numbers = {sign: number for number, sign in enumerate(self.batch.signs(0).tolist())}
        return np.array([numbers[sign] for sign in self.cells[sample][slot]], dtype=np.int64)


def make_samples(cells: Cells, poolings: Sequence[str], labels: Sequence[int] | None = None) -> Samples:
    """Samples of as many slots of one group as there are poolings."""
    names = [f"slot{number}" for number in range(len(poolings))]
    slots = [
        {
            "kind": "sparse",
            "name": name,
            "sign": "value",
            "max_length": 4,
            "missing": "skip",
            "pooling": pooling,
            "tables": ["t"],
        }
        for name, pooling in zip(names, poolings, strict=True)
    ]
    tables = [{"name": "t", "dim": 1}]
    schema = Schema(
        json.dumps({"version": 1, "slots": [{"kind": "label", "name": "label"}, *slots], "tables": tables})
    )
    batcher = RecordBatcher(schema, json.dumps({"batch_size": len(cells)}))
    records: list[dict[str, object]] = [
        {"label": label, **dict(zip(names, sample, strict=True))}
        for label, sample in zip(labels or [0] * len(cells), cells, strict=True)
    ]
    (batch,) = batcher.add(records) or batcher.finish()
    (layout,) = schema.layout()
    return Samples(batch, layout, cells)


def random_cells(*, one_each: bool) -> Cells:
    """Cells of one sign, or of none up to four in each slot."""
    random = np.random.default_rng(4)
    return [
        [
            random.integers(0, NUM_SIGNS, size=1 if one_each else (sample + 2 * slot) % 5).tolist()
            for slot in range(NUM_SLOTS)
        ]
        for sample in range(NUM_SAMPLES)
    ]


def make_lookup(make_table: MakeTable, dim: int, batch: Batch) -> tuple[Table, Lookup]:
    table = make_table(dim, optimizer={"kind": "sgd"})
    return table, table.lookup_batch(batch, 0, True)


def pool_one(rows_UD: torch.Tensor, numbers: NDArray[np.int64], pooling: str) -> torch.Tensor:
    if len(numbers) == 0:
        return torch.zeros(rows_UD.shape[1])
    rows_ND = rows_UD[torch.from_numpy(numbers)]
    if pooling == "max":
        return torch.stack([column_N[int(column_N.argmax())] for column_N in rows_ND.T])
    return rows_ND.sum(dim=0) if pooling == "sum" else rows_ND.mean(dim=0)


@pytest.mark.parametrize("dim", [1, 8, 10, 16, 33])
@pytest.mark.parametrize("one_each", [True, False])
@pytest.mark.parametrize("poolings", [("sum", "sum", "sum"), ("mean", "max", "sum"), ("max", "none", "mean")])
def test_pool_and_unpool_are_those_of_torch(
    make_table: MakeTable, dim: int, one_each: bool, poolings: tuple[str, str, str]
) -> None:
    samples = make_samples(random_cells(one_each=one_each), poolings)
    _, lookup = make_lookup(make_table, dim, samples.batch)
    pooled = [(slot, pooling) for slot, pooling in enumerate(poolings) if pooling != "none"]
    rows_UD = torch.from_numpy(lookup.values()).requires_grad_()
    expected_BPD = torch.stack(
        [
            torch.stack([pool_one(rows_UD, samples.of(sample, slot), pooling) for slot, pooling in pooled])
            for sample in range(NUM_SAMPLES)
        ]
    )
    found_BPD = np.full((NUM_SAMPLES, len(pooled), dim), np.nan, dtype=np.float32)
    lookup.pool(samples.layout, found_BPD)
    np.testing.assert_allclose(found_BPD, expected_BPD.detach().numpy(), rtol=1e-6, atol=1e-7)

    gradient_BPD = np.random.default_rng(8).normal(size=found_BPD.shape).astype(np.float32)
    expected_BPD.backward(torch.from_numpy(gradient_BPD))
    lookup.unpool(samples.layout, gradient_BPD)
    assert rows_UD.grad is not None
    np.testing.assert_allclose(lookup.gradients(), rows_UD.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("one_each", [True, False])
def test_halves_of_a_batch_give_what_the_whole_gives(make_table: MakeTable, one_each: bool) -> None:
    batch, layout, _ = make_samples(random_cells(one_each=one_each), ("mean", "sum", "max"))
    (_, whole), (_, halves) = make_lookup(make_table, 8, batch), make_lookup(make_table, 8, batch)
    whole_BPD = np.empty((NUM_SAMPLES, 3, 8), dtype=np.float32)
    whole.pool(layout, whole_BPD)
    halves_BPD = np.empty_like(whole_BPD)
    whole.unpool(layout, whole_BPD)
    for first, last in [(0, 3), (3, NUM_SAMPLES)]:
        part_BPD = halves_BPD[first:last]
        halves.pool(layout, part_BPD, first_sample=first)
        halves.unpool(layout, part_BPD, first_sample=first)
    np.testing.assert_array_equal(halves_BPD, whole_BPD)
    np.testing.assert_array_equal(halves.gradients(), whole.gradients())


def test_a_sequence_is_padded_with_zeros_and_cut_at_its_length(make_table: MakeTable) -> None:
    samples = make_samples(random_cells(one_each=False), ("sum", "none", "sum"))
    _, lookup = make_lookup(make_table, 5, samples.batch)
    rows_UD = lookup.values()
    out_BLD = np.full((NUM_SAMPLES, 3, 5), np.nan, dtype=np.float32)
    lengths_B = np.zeros(NUM_SAMPLES, dtype=np.int64)
    lookup.sequence(samples.layout, 0, out_BLD, lengths_B)
    gradient_BLD = np.random.default_rng(2).normal(size=out_BLD.shape).astype(np.float32)
    lookup.unsequence(samples.layout, 0, gradient_BLD)
    expected_UD = np.zeros_like(rows_UD)
    for sample in range(NUM_SAMPLES):
        numbers = samples.of(sample, 1)[:3]
        assert lengths_B[sample] == len(numbers)
        np.testing.assert_array_equal(out_BLD[sample, : len(numbers)], rows_UD[numbers])
        assert (out_BLD[sample, len(numbers) :] == 0).all()
        np.add.at(expected_UD, numbers, gradient_BLD[sample, : len(numbers)])
    np.testing.assert_allclose(lookup.gradients(), expected_UD, rtol=1e-6, atol=1e-7)


def test_the_gradient_of_equal_maxima_goes_to_the_first(make_table: MakeTable) -> None:
    # The second sample has the rows 2, 0, 1, in this order.
    batch, layout, _ = make_samples([[[5, 6]], [[7, 5, 6]]], ["max"])
    table = make_table(2, spec={"init": {"kind": "zeros"}})
    lookup = table.lookup_batch(batch, 0, True)
    lookup.unpool(layout, np.ones((1, 1, 2), dtype=np.float32), first_sample=1)
    np.testing.assert_array_equal(lookup.gradients(), [[0, 0], [0, 0], [1, 1]])


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((NUM_SAMPLES + 1, 3, 4), "samples 0 to 8"),
        ((NUM_SAMPLES, 3, 5), "last axis"),
        ((NUM_SAMPLES, 2, 4), "middle axis"),
    ],
)
def test_arrays_that_do_not_fit_the_batch_are_refused(
    make_table: MakeTable, shape: tuple[int, int, int], message: str
) -> None:
    batch, layout, _ = make_samples(random_cells(one_each=True), ("sum", "mean", "max"))
    _, lookup = make_lookup(make_table, 4, batch)
    with pytest.raises(ValueError, match=message):
        lookup.pool(layout, np.zeros(shape, dtype=np.float32))
    with pytest.raises(ValueError, match=message):
        lookup.unpool(layout, np.zeros(shape, dtype=np.float32))


def test_a_lookup_of_plain_signs_has_no_samples_to_pool(make_table: MakeTable) -> None:
    batch, layout, _ = make_samples([[[5]]], ["sum"])
    lookup = make_table(4).lookup(batch.signs(0), train=True)
    with pytest.raises(ValueError, match="made for signs, not for a batch"):
        lookup.pool(layout, np.zeros((1, 1, 4), dtype=np.float32))


def test_a_batch_trains_through_pool_unpool_and_apply(make_table: MakeTable) -> None:
    batch, layout, _ = make_samples(random_cells(one_each=True), ("sum", "sum", "sum"))
    table, lookup = make_lookup(make_table, 10, batch)
    before_UD = lookup.values()
    lookup.unpool(layout, np.ones((NUM_SAMPLES, NUM_SLOTS, 10), dtype=np.float32))
    expected_UD = before_UD - np.float32(0.25) * lookup.gradients()
    table.apply(lookup, 0.25)
    np.testing.assert_array_equal(table.peek(batch.signs(0)), expected_UD)


def test_observed_shows_and_clicks_decide_who_stays(make_table: MakeTable) -> None:
    rule = {"show_coefficient": 0.1, "click_coefficient": 1.0, "decay": 1.0, "threshold": 0.25}
    table = make_table(2, eviction={"show_click": rule})
    # Sign 10: 2 shows; sign 11: 1 show, 1 click; sign 12: 3 shows, 1 click.
    cells = [[[10, 12], []], [[10, 12], []], [[11], [12]]]
    batch, _, _ = make_samples(cells, ["sum", "sum"], labels=[0, 0, 1])
    lookup = table.lookup_batch(batch, 0, True)
    lookup.observe()
    table.apply(lookup, 0.1)
    table.evict()
    assert table.rows() == 2
    table.pull(np.array([11, 12], dtype=np.uint64), train=True)
    assert table.rows() == 2, "the signs 11 and 12 have stayed"
