"""The rows of a round: one batch of each rank that has one, looked up and updated together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clickmill import _core
from clickmill.train.collective.placement import Ask, Replicated, Sharded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clickmill._core import Batch, Located, Lookup
    from clickmill.ps.tables import TableSet
    from clickmill.train.collective.group import Group
    from clickmill.train.collective.placement import Placement, Signs
    from clickmill.train.features import Feed

    Array = NDArray[np.float32]


@dataclass(frozen=True)
class Union:
    """The distinct signs of a group of slots that this rank holds rows for, and whose they are."""

    signs: Signs
    positions: list[NDArray[np.uint32]]
    """For each rank: where its signs are among them."""

    @classmethod
    def of(cls, asked: list[Signs]) -> Union:
        """Of the signs that each rank has asked for."""
        signs, inverse = _core.unite_signs(np.concatenate(asked))
        ends = np.cumsum([len(each) for each in asked])[:-1]
        return cls(signs, np.split(inverse, ends))

    def add_up(self, parts: list[Array]) -> Array:
        """Sum of numbers [U,N] of the ranks by row, in the order of the ranks."""
        total = np.zeros((len(self.signs), parts[0].shape[1]), np.float32)
        for positions, part in zip(self.positions, parts, strict=True):
            total[positions] += part  # a rank has each sign once
        return total


@dataclass(frozen=True)
class Round:
    """A batch, and what was found for all ranks that have one."""

    batch: Batch
    num_samples: list[int]
    """Of each rank."""
    asks: list[Ask]
    """By feed."""
    unions: list[Union]
    """By feed."""
    located: list[Located]

    @property
    def share(self) -> float:
        """Part of this rank in the samples of the round."""
        return self.batch.num_rows / sum(self.num_samples)


class CollectiveRows:
    """Rows of this rank's tables, for all ranks."""

    def __init__(self, group: Group, tables: TableSet, feeds: tuple[Feed, ...]) -> None:
        self._group = group
        self._tables = tables
        self._feeds = feeds
        sharded = group.members.has_sharded_rows
        self._placement: Placement = Sharded(group.rows) if sharded else Replicated(group.rows)

    def locate(self, batch: Batch) -> Round:
        """Find, or make, the rows of a round."""
        num_samples = self._group.rows.gather_numbers([batch.num_rows])[:, 0].astype(int).tolist()
        asks, unions = self._ask(batch)
        located = [
            self._tables[feed.table].locate(union.signs)
            for feed, union in zip(self._feeds, unions, strict=True)
        ]
        return Round(batch, num_samples, asks, unions, located)

    def fill(self, found: Round) -> tuple[list[Lookup], list[Lookup]]:
        """Rows as they are now: of this rank's batch, and those that it holds for all."""
        held = [
            self._tables[feed.table].fill(located)
            for feed, located in zip(self._feeds, found.located, strict=True)
        ]
        return self._answer(found.batch, found.asks, found.unions, held), held

    def read(self, batch: Batch) -> list[Lookup]:
        """Rows of a batch to score, with nothing made; all ranks read one at a time."""
        asks, unions = self._ask(batch)
        held = [
            self._tables[feed.table].lookup(union.signs, False)
            for feed, union in zip(self._feeds, unions, strict=True)
        ]
        return self._answer(batch, asks, unions, held)

    def gather(self, found: Round, lookups: list[Lookup], held: list[Lookup]) -> None:
        """Bring the gradients of all ranks, weighted by their samples, together where the rows are."""
        columns = [
            self._columns(feed, lookup, found.share)
            for feed, lookup in zip(self._feeds, lookups, strict=True)
        ]
        given = self._placement.give(found.asks, columns)
        for feed, union, lookup, parts in zip(self._feeds, found.unions, held, given, strict=True):
            total = union.add_up(parts)
            lookup.add_gradients(np.ascontiguousarray(total[:, : feed.dim]))
            if self._tables[feed.table].has_statistics:
                shows, clicks = np.ascontiguousarray(total[:, feed.dim :].T)
                lookup.add_counts(shows, clicks)

    def _ask(self, batch: Batch) -> tuple[list[Ask], list[Union]]:
        asks, asked = self._placement.ask([batch.signs(group) for group in range(batch.num_groups)])
        unions = [Union.of(each) for each in asked]
        groups = [feed.group for feed in self._feeds]
        return [asks[group] for group in groups], [unions[group] for group in groups]

    def _answer(self, batch: Batch, asks: list[Ask], unions: list[Union], held: list[Lookup]) -> list[Lookup]:
        def rows(union: Union, lookup: Lookup) -> Any:
            values = lookup.values()
            return lambda rank: values[union.positions[rank]]

        answered = self._placement.answer(
            asks, [rows(union, lookup) for union, lookup in zip(unions, held, strict=True)]
        )
        return [
            _core.Lookup.from_values(batch, feed.group, values)
            for feed, values in zip(self._feeds, answered, strict=True)
        ]

    def _columns(self, feed: Feed, lookup: Lookup, share: float) -> Array:
        gradients = lookup.gradients()
        gradients *= np.float32(share)
        if not self._tables[feed.table].has_statistics:
            return gradients
        lookup.observe()
        shows, clicks = lookup.counts()
        return np.concatenate([gradients, shows[:, None], clicks[:, None]], axis=1)
