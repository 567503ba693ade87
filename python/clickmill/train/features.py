"""From a batch and its rows to the tensors that a model reads, and back with the gradients.

B samples, F dense values, S pooled slots, L sequence length, D row width, U distinct signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from clickmill.nn import Features, Inputs, Sequence, TableInputs

if TYPE_CHECKING:
    from clickmill._core import Batch, GroupLayout, Located, Lookup, Schema
    from clickmill.ps.tables import TableSet


@dataclass(frozen=True)
class Part:
    """Consecutive samples of a batch."""

    first: int
    num_rows: int

    @property
    def rows(self) -> slice:
        """For arrays of the whole batch."""
        return slice(self.first, self.first + self.num_rows)


def cut(num_rows: int, num_parts: int) -> list[Part]:
    """At most `num_parts` parts of nearly equal size, of two samples at least where there are two.

    The variance of a single sample is not defined, and batch normalisation refuses it.
    """
    num_parts = max(min(num_parts, num_rows // 2), 1)
    ends = [num_rows * index // num_parts for index in range(num_parts + 1)]
    return [Part(begin, end - begin) for begin, end in pairwise(ends)]


@dataclass(frozen=True)
class Feed:
    """The slots of one group as one table holds them."""

    group: int
    table: str
    dim: int
    pooled: tuple[str, ...]
    sequences: tuple[tuple[str, int], ...]
    """Slot name and longest length of each slot that is not pooled."""
    layout: GroupLayout


@dataclass
class Leaf:
    """Tensors of one feed of one part; after backward they carry the gradients."""

    feed: Feed
    lookup: Lookup
    first_sample: int
    pooled_BSD: torch.Tensor | None
    sequences_BLD: list[torch.Tensor]

    def gather_gradients(self) -> None:
        """Bring the gradients of the tensors together per row, in the lookup."""
        if self.pooled_BSD is not None and self.pooled_BSD.grad is not None:
            self.lookup.unpool(self.feed.layout, self.pooled_BSD.grad.contiguous().numpy(), self.first_sample)
        for index, values_BLD in enumerate(self.sequences_BLD):
            if values_BLD.grad is not None:
                self.lookup.unsequence(
                    self.feed.layout, index, values_BLD.grad.contiguous().numpy(), self.first_sample
                )


def make_feeds(schema: Schema) -> tuple[Feed, ...]:
    """One feed for each table of each group, in schema order."""
    feeds = []
    for index, group in enumerate(schema.layout()):
        for table, dim in group.tables:
            feeds.append(
                Feed(
                    group=index,
                    table=table,
                    dim=dim,
                    pooled=tuple(group.pooled),
                    sequences=tuple(group.sequences),
                    layout=group,
                )
            )
    return tuple(feeds)


def make_inputs(schema: Schema, feeds: tuple[Feed, ...]) -> Inputs:
    """What a model is told about its inputs when it is built."""
    tables: dict[str, TableInputs] = {}
    for feed in feeds:
        known = tables.get(feed.table)
        slots = (*known.slots, *feed.pooled) if known else feed.pooled
        sequences = {**known.sequences, **dict(feed.sequences)} if known else dict(feed.sequences)
        tables[feed.table] = TableInputs(dim=feed.dim, slots=slots, sequences=sequences)
    return Inputs(num_dense=schema.num_dense, tables=tables)


def read_rows(batch: Batch, tables: TableSet, feeds: tuple[Feed, ...]) -> list[Lookup]:
    """Rows of a batch to score, one lookup for each feed; nothing is made."""
    return [tables[feed.table].lookup_batch(batch, feed.group, False) for feed in feeds]


def locate_rows(batch: Batch, tables: TableSet, feeds: tuple[Feed, ...]) -> list[Located]:
    """Find, or make, the rows of a batch to train on, one for each feed; `fill_rows` reads them."""
    return [tables[feed.table].locate_batch(batch, feed.group) for feed in feeds]


def fill_rows(located: list[Located], tables: TableSet, feeds: tuple[Feed, ...]) -> list[Lookup]:
    """Read the rows that were located."""
    return [tables[feed.table].fill(each) for feed, each in zip(feeds, located, strict=True)]


def on_device(features: Features, device: torch.device) -> Features:
    """The same tensors in the memory of a device; they themselves where they are there already."""
    if device.type == "cpu":
        return features
    return Features(
        dense_BF=features.dense_BF.to(device),
        pooled={table: values.to(device) for table, values in features.pooled.items()},
        sequences={
            key: Sequence(each.values_BLD.to(device), each.lengths_B.to(device))
            for key, each in features.sequences.items()
        },
    )


def build_features(
    batch: Batch, lookups: list[Lookup], feeds: tuple[Feed, ...], part: Part, *, train: bool
) -> tuple[Features, list[Leaf]]:
    """Tensors of a part of a batch; with `train` the leaves ask for gradients."""
    num_rows = part.num_rows
    leaves = []
    pooled: dict[str, list[torch.Tensor]] = {}
    sequences: dict[tuple[str, str], Sequence] = {}
    for feed, lookup in zip(feeds, lookups, strict=True):
        pooled_BSD = None
        if feed.pooled:
            pooled_BSD = torch.empty(num_rows, len(feed.pooled), feed.dim)
            lookup.pool(feed.layout, pooled_BSD.numpy(), part.first)
            pooled_BSD.requires_grad_(train)
            pooled.setdefault(feed.table, []).append(pooled_BSD)
        values = []
        for index, (slot, length) in enumerate(feed.sequences):
            values_BLD = torch.empty(num_rows, length, feed.dim)
            lengths_B = torch.empty(num_rows, dtype=torch.int64)
            lookup.sequence(feed.layout, index, values_BLD.numpy(), lengths_B.numpy(), part.first)
            values_BLD.requires_grad_(train)
            values.append(values_BLD)
            sequences[feed.table, slot] = Sequence(values_BLD, lengths_B)
        leaves.append(Leaf(feed, lookup, part.first, pooled_BSD, values))
    features = Features(
        dense_BF=torch.tensor(batch.dense[part.rows]),
        pooled={
            table: parts[0] if len(parts) == 1 else torch.cat(parts, dim=1) for table, parts in pooled.items()
        },
        sequences=sequences,
    )
    return features, leaves
