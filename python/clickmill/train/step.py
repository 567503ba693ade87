"""One training step, cut into the stages that `turns` orders.

pull      take a batch, look its rows up                              in turn
compute   pool, forward, loss, backward, gradients per row            side by side
commit    dense update, row updates, metrics                          in turn
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from clickmill.nn.dropout import seed_batch
from clickmill.train.features import Leaf, build_features, pull_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, DenseOptimizer, Lookup
    from clickmill.metrics import MetricSet
    from clickmill.nn import Features, Model
    from clickmill.ps.tables import TableSet
    from clickmill.train.features import Feed
    from clickmill.train.replica import Replicas
    from clickmill.train.schedule import Schedule

    Array = NDArray[np.float32]


@dataclass(frozen=True)
class StepOptions:
    """What does not change during a run."""

    precision: str
    learning_rate: float
    clip_norm: float | None
    seed: int
    is_progressive: bool


@dataclass(frozen=True)
class Pulled:
    """A batch with its rows."""

    number: int
    """Updates before this batch, since the start of the run."""
    batch: Batch
    lookups: list[Lookup]


@dataclass(frozen=True)
class Computed:
    """What a batch brings to its turn."""

    loss: float
    scores_B: Array
    gradients: list[Array]
    leaves: list[Leaf]


def batch_seed(seed: int, number: int) -> int:
    """Seed of everything random in batch `number`: far apart for neighbouring batches and seeds."""
    return (seed * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9 + 1) % (1 << 63)


class TrainStages:
    """The stages of training; one object for a whole run, driven leg by leg between fences."""

    def __init__(
        self,
        *,
        tables: TableSet,
        feeds: tuple[Feed, ...],
        replicas: Replicas,
        optimizer: DenseOptimizer,
        schedule: Schedule,
        metrics: MetricSet,
        options: StepOptions,
    ) -> None:
        self.step = 0
        """Updates committed since the start of the run."""
        self.pass_number = 0
        self._tables = tables
        self._feeds = feeds
        self._replicas = replicas
        self._optimizer = optimizer
        self._schedule = schedule
        self._metrics = metrics
        self._options = options
        self._num_pulled = 0

    def connect(
        self, next_batch: Callable[[], Batch | None], after_commit: Callable[[Pulled, float], None]
    ) -> None:
        """Say where batches come from, and who hears of each that is committed with its loss."""
        self._next_batch = next_batch
        self._after_commit = after_commit

    def begin_leg(self, step: int, pass_number: int) -> None:
        """Start from a fence: nothing is under way, all copies of the net are equal."""
        self.step = step
        self.pass_number = pass_number
        self._num_pulled = step
        self._replicas.align()

    def pull(self, worker: int) -> Pulled | None:
        del worker
        batch = self._next_batch()
        if batch is None:
            return None
        pulled = Pulled(self._num_pulled, batch, pull_leaves(batch, self._tables, self._feeds, train=True))
        self._num_pulled += 1
        return pulled

    def compute(self, worker: int, pulled: Pulled) -> Computed:
        replica = self._replicas[worker]
        model = replica.model
        batch = pulled.batch
        seed_batch(model, batch_seed(self._options.seed, pulled.number))
        features, leaves = build_features(batch, pulled.lookups, self._feeds, train=True)
        label_B = torch.tensor(batch.labels[:, 0])
        weight_B = None if batch.weights is None else torch.tensor(batch.weights)
        score_B = None
        if self._options.is_progressive:
            score_B = self._score(model, features)
        with torch.autocast("cpu", torch.bfloat16, enabled=self._options.precision == "bf16"):
            logit_B = model(features)
        logit_B = logit_B.float()
        loss = model.loss(logit_B, label_B, weight_B)
        loss.backward()  # type: ignore[no-untyped-call]
        if score_B is None:
            score_B = model.predict(logit_B.detach())
        for leaf in leaves:
            leaf.gather_gradients()
        return Computed(loss.item(), score_B.numpy(), replica.take_gradients(), leaves)

    def _score(self, model: Model, features: Features) -> torch.Tensor:
        model.eval()
        with (
            torch.no_grad(),
            torch.autocast("cpu", torch.bfloat16, enabled=self._options.precision == "bf16"),
        ):
            score_B: torch.Tensor = model.predict(model(features).float())
        model.train()
        return score_B

    def commit(self, worker: int, pulled: Pulled, computed: Computed) -> None:
        factor = self._schedule.factor(self.step, self.pass_number)
        scale = self._clip_scale(computed)
        source, target = self._replicas.newest, self._replicas[worker]
        self._optimizer.step(
            target.arrays, source.arrays, computed.gradients, self._options.learning_rate * factor, scale
        )
        self._replicas.set_newest(worker)
        self._tables.begin_step(self.step + 1)
        for leaf in computed.leaves:
            table = leaf.feed.table
            self._tables[table].apply(leaf.lookup, self._tables.learning_rate(table) * factor, scale)
        batch = pulled.batch
        self._metrics.update(computed.scores_B, batch.labels[:, 0], batch.weights, batch.group_keys)
        self.step += 1
        self._after_commit(pulled, computed.loss)

    def _clip_scale(self, computed: Computed) -> float:
        """Factor that brings the norm of all gradients, dense and of rows, down to `clip_norm`."""
        limit = self._options.clip_norm
        if limit is None:
            return 1.0
        squares = self._optimizer.square_sum(computed.gradients)
        squares += sum(leaf.lookup.gradient_square_sum() for leaf in computed.leaves)
        norm = math.sqrt(squares)
        return min(1.0, limit / norm) if norm > 0.0 else 1.0
