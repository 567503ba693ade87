"""Where the parameters of a run are, and how a batch's gradients reach them.

A step reads rows for a batch, computes, and hands over an `Update`. Whether rows and dense parameters lie in
this process, on servers or on every rank of a group is the business of the `Parameters` that it hands it to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from clickmill.train.features import fill_rows, locate_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, Located, Lookup
    from clickmill.ps.tables import TableSet
    from clickmill.train.crew import Crew
    from clickmill.train.dense import DenseOptimizer
    from clickmill.train.features import Feed, Leaf
    from clickmill.train.replica import Replicas
    from clickmill.train.schedule import Schedule
    from clickmill.train.stopwatch import Stopwatch

    Array = NDArray[np.float32]

Found = TypeVar("Found")
"""Rows of a batch that have been found, or asked for, but not read."""


@dataclass(frozen=True)
class Update:
    """What a batch asks to be changed."""

    step: int
    """Updates of the run before this one."""
    pass_number: int
    batch: Batch
    lookups: list[Lookup]
    gradients: list[list[Array]]
    """Of the dense parameters: for each part of the batch one array a parameter."""
    leaves: list[Leaf]
    """Of the rows: tensors of all parts, which carry the gradients."""
    scores: list[Array]
    """Of each part of the batch, in order."""
    loss: float

    def gather(self) -> None:
        """Bring the gradients of the rows together in the lookups."""
        for leaf in self.leaves:
            leaf.gather_gradients()


class Parameters(Protocol[Found]):
    """Rows and dense parameters of a run, wherever they are kept."""

    def locate(self, batch: Batch) -> Found:
        """Do what reading the rows of a batch needs and what need not wait for the update before."""

    def fill(self, found: Found) -> list[Lookup]:
        """Rows as they are now, one lookup for each feed; the dense net is current when this returns."""

    def update(
        self, crew: Crew, update: Update, beside: Callable[[], None], following: Found | None
    ) -> list[Lookup] | None:
        """Apply an update, then read what was located for the batch that follows it.

        `beside` is work that needs none of this and may run at the same time, once.
        """


@dataclass(frozen=True)
class Rates:
    """Learning rates and clipping of a run."""

    dense: float
    """Base rate of the dense parameters."""
    schedule: Schedule
    clip_norm: float | None

    def factor(self, update: Update) -> float:
        """What all base rates are multiplied by in this update."""
        return self.schedule.factor(update.step, update.pass_number)

    def scale(self, update: Update, square_sum: Callable[[list[list[Array]]], float]) -> float:
        """Factor that brings the norm of all gradients, dense and of rows, down to `clip_norm`.

        Gathers the gradients of the rows where it has to look at them.
        """
        if self.clip_norm is None:
            return 1.0
        update.gather()
        squares = square_sum(update.gradients)
        squares += sum(lookup.gradient_square_sum() for lookup in update.lookups)
        norm = math.sqrt(squares)
        return min(1.0, self.clip_norm / norm) if norm > 0.0 else 1.0


class LocalParameters:
    """Tables and dense parameters of this process.

    Dense parameters are updated beside the rows, where there are two workers; rows of the next batch are
    read right after.
    """

    def __init__(
        self,
        *,
        tables: TableSet,
        feeds: tuple[Feed, ...],
        replicas: Replicas,
        optimizer: DenseOptimizer,
        rates: Rates,
        stopwatch: Stopwatch,
    ) -> None:
        self._tables = tables
        self._feeds = feeds
        self._replicas = replicas
        self._optimizer = optimizer
        self._rates = rates
        self._stopwatch = stopwatch

    def locate(self, batch: Batch) -> list[Located]:
        with self._stopwatch.measure("locate"):
            return locate_rows(batch, self._tables, self._feeds)

    def fill(self, found: list[Located]) -> list[Lookup]:
        with self._stopwatch.measure("pull"):
            return fill_rows(found, self._tables, self._feeds)

    def update(
        self, crew: Crew, update: Update, beside: Callable[[], None], following: list[Located] | None
    ) -> list[Lookup] | None:
        scale = self._rates.scale(update, self._optimizer.square_sum)
        dense = partial(self._update_dense, update, scale, beside)
        rows = partial(self._update_rows, update, scale, following)
        if crew.size == 1:
            dense()
            return rows()
        tasks: list[Callable[[], list[Lookup] | None]] = [dense, rows]
        with self._stopwatch.waiting():
            return crew.run(tasks)[1]

    def _update_dense(self, update: Update, scale: float, beside: Callable[[], None]) -> None:
        rate = self._rates.dense * self._rates.factor(update)
        with self._stopwatch.measure("update_dense"):
            self._optimizer.step(self._replicas.arrays, update.gradients, rate, scale)
        beside()

    def _update_rows(
        self, update: Update, scale: float, following: list[Located] | None
    ) -> list[Lookup] | None:
        factor = self._rates.factor(update)
        self._tables.begin_step(update.step + 1)
        with self._stopwatch.measure("update_rows"):
            if self._rates.clip_norm is None:
                update.gather()
            for feed, lookup in zip(self._feeds, update.lookups, strict=True):
                table = self._tables[feed.table]
                if table.has_statistics:
                    lookup.observe()
                table.apply(lookup, self._tables.learning_rate(feed.table) * factor, scale)
        return None if following is None else self.fill(following)
