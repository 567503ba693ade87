"""Parameters that every rank of a group has, and has alike after every step.

Dense gradients are summed over the ranks and every rank makes the same update. Rows are updated by who holds
them, with the gradients of all ranks in the order of the ranks. Both are weighted by samples, so that the
ranks learn what one process would from all their batches at once.
"""

from __future__ import annotations

import hashlib
import math
import os
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from clickmill.errors import StateError
from clickmill.train.collective.rows import CollectiveRows, Round

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from clickmill._core import Batch, Lookup
    from clickmill.ps.tables import TableSet
    from clickmill.train.collective.channel import Channel
    from clickmill.train.collective.group import Group
    from clickmill.train.crew import Crew
    from clickmill.train.dense import DenseOptimizer
    from clickmill.train.features import Feed
    from clickmill.train.gpu.net import DeviceReplicas
    from clickmill.train.parameters import Rates, Update
    from clickmill.train.replica import Replicas
    from clickmill.train.stopwatch import Stopwatch

    Array = NDArray[np.float32]

CHECK_VARIABLE = "CLICKMILL_CHECK_RANKS"
"""Set in the environment: after every step the ranks compare all of their parameters."""


class Sum(Protocol):
    """The sum of dense gradients over the ranks."""

    def __call__(self, gradients: list[list[Array]], share: float) -> list[list[Array]]:
        """Gradients of the parts of this rank's batch in, the one of the round out, for an optimizer."""


class HostSum:
    """Of gradients in the memory of this process: one message for all of them."""

    def __init__(self, channel: Channel, sizes: list[int]) -> None:
        self._channel = channel
        self._flat = np.zeros(sum(sizes), np.float32)
        self._parts = np.split(self._flat, np.cumsum(sizes)[:-1])

    def __call__(self, gradients: list[list[Array]], share: float) -> list[list[Array]]:
        self._flat[:] = 0.0
        for part in gradients:
            for total, gradient in zip(self._parts, part, strict=True):
                np.add(total, gradient, out=total)
        self._flat *= np.float32(share)
        self._channel.add(torch.from_numpy(self._flat))
        return [self._parts]


class DeviceSum:
    """Of gradients in the memory of a card, where the net and its optimizer find them."""

    def __init__(self, channel: Channel, net: DeviceReplicas) -> None:
        self._channel = channel
        self._net = net

    def __call__(self, gradients: list[list[Array]], share: float) -> list[list[Array]]:
        self._net.gradient.mul_(share)
        self._channel.add(self._net.gradient)
        return gradients


class CollectiveParameters:
    """Parameters of a rank."""

    def __init__(
        self,
        *,
        group: Group,
        tables: TableSet,
        feeds: tuple[Feed, ...],
        replicas: Replicas,
        optimizer: DenseOptimizer,
        sum_gradients: Sum,
        rates: Rates,
        stopwatch: Stopwatch,
    ) -> None:
        self._group = group
        self._tables = tables
        self._feeds = feeds
        self._replicas = replicas
        self._optimizer = optimizer
        self._sum = sum_gradients
        self._rates = rates
        self._stopwatch = stopwatch
        self._rows = CollectiveRows(group, tables, feeds)
        self._round: Round | None = None
        """The one that was filled last, and is to be updated next."""
        self._held: list[Lookup] = []
        self._is_checked = bool(os.environ.get(CHECK_VARIABLE))

    def locate(self, batch: Batch) -> Round:
        with self._stopwatch.measure("locate"):
            return self._rows.locate(batch)

    def fill(self, found: Round) -> list[Lookup]:
        with self._stopwatch.measure("pull"):
            lookups, self._held = self._rows.fill(found)
            self._round = found
            return lookups

    def update(
        self, crew: Crew, update: Update, beside: Callable[[], None], following: Round | None
    ) -> list[Lookup] | None:
        lookups = self._update(crew, update, beside, following)
        if self._is_checked:
            self._check(update.step)
        return lookups

    def _update(
        self, crew: Crew, update: Update, beside: Callable[[], None], following: Round | None
    ) -> list[Lookup] | None:
        # Rows are gathered before the scale is known that depends on all of them.
        if self._rates.clip_norm is not None:
            gradients = self._sum_dense(update)
            self._gather_rows(update)
            scale = self._clip(gradients)
            self._step_dense(update, gradients, scale)
            beside()
            return self._apply_rows(update, scale, following)

        def dense() -> None:
            self._step_dense(update, self._sum_dense(update), 1.0)
            beside()

        def rows() -> list[Lookup] | None:
            self._gather_rows(update)
            return self._apply_rows(update, 1.0, following)

        if crew.size == 1:
            dense()
            return rows()
        tasks: list[Callable[[], list[Lookup] | None]] = [dense, rows]
        return crew.run(tasks)[1]

    def _sum_dense(self, update: Update) -> list[list[Array]]:
        assert self._round is not None
        with self._stopwatch.measure("sum_dense"):
            return self._sum(update.gradients, self._round.share)

    def _step_dense(self, update: Update, gradients: list[list[Array]], scale: float) -> None:
        rate = self._rates.dense * self._rates.factor(update)
        with self._stopwatch.measure("update_dense"):
            self._optimizer.step(self._replicas.arrays, gradients, rate, scale)

    def _gather_rows(self, update: Update) -> None:
        assert self._round is not None
        with self._stopwatch.measure("gather_rows"):
            update.gather()
            self._rows.gather(self._round, update.lookups, self._held)

    def _clip(self, gradients: list[list[Array]]) -> float:
        assert self._rates.clip_norm is not None
        squares = math.fsum(lookup.gradient_square_sum() for lookup in self._held)
        if self._group.members.has_sharded_rows:
            squares = math.fsum(self._group.rows.gather_numbers([squares])[:, 0])
        norm = math.sqrt(squares + self._optimizer.square_sum(gradients))
        return min(1.0, self._rates.clip_norm / norm) if norm > 0.0 else 1.0

    def _apply_rows(self, update: Update, scale: float, following: Round | None) -> list[Lookup] | None:
        factor = self._rates.factor(update)
        self._tables.begin_step(update.step + 1)
        with self._stopwatch.measure("update_rows"):
            for feed, lookup in zip(self._feeds, self._held, strict=True):
                rate = self._tables.learning_rate(feed.table) * factor
                self._tables[feed.table].apply(lookup, rate, scale)
        return None if following is None else self.fill(following)

    def digest(self) -> str:
        """Of all that every rank must have alike."""
        digest = hashlib.sha256()
        for array in self._replicas.copies():
            digest.update(array.tobytes())
        for array in self._optimizer.state()[1]:
            digest.update(array.tobytes())
        if not self._group.members.has_sharded_rows:
            for name in self._tables:
                digest.update(self._tables[name].digest().encode())
        return digest.hexdigest()

    def _check(self, step: int) -> None:
        digests = self._group.rows.gather_json(self.digest())
        if len(set(digests)) != 1:
            raise StateError(f"the parameters of the ranks differ after step {step + 1}: {digests}")
