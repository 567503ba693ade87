"""One training step: a batch split over the workers, and one update of everything.

    compute   each worker: pool, forward, loss, backward on its part of the batch   side by side,
              and one thread ahead: the next batch, and where its rows are
    update    dense parameters and metrics | rows, then the rows of the next batch   side by side

The parts' gradients are summed in a fixed order, so a run depends on the number of workers by rounding
alone, and not at all on their speed. What follows the first update of a batch has seen all of it: there
is no delay, and two workers learn what one does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from clickmill.errors import DivergedError
from clickmill.nn.dropout import seed_batch
from clickmill.train.features import Leaf, Part, build_features, cut, fill_rows, locate_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, DenseOptimizer, Located, Lookup
    from clickmill.metrics import MetricSet
    from clickmill.nn import Features, Model
    from clickmill.ps.tables import TableSet
    from clickmill.train.crew import Crew
    from clickmill.train.features import Feed
    from clickmill.train.replica import Replicas
    from clickmill.train.schedule import Schedule
    from clickmill.train.stopwatch import Stopwatch

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
class _Located:
    """A batch whose rows have been found, but not read."""

    batch: Batch
    rows: list[Located]


@dataclass(frozen=True)
class Pulled:
    """A batch with its rows."""

    batch: Batch
    lookups: list[Lookup]


@dataclass(frozen=True)
class Computed:
    """What a worker made of its part."""

    part: Part
    loss: float
    """Share of this part in the mean loss of the batch."""
    scores_B: Array
    gradients: list[Array]
    leaves: list[Leaf]


def batch_seed(seed: int, number: int, worker: int) -> int:
    """Seed of everything random in a worker's part of batch `number`: far apart for neighbours."""
    mixed = seed * 0x9E3779B97F4A7C15 + number * 0xBF58476D1CE4E5B9 + worker * 0x94D049BB133111EB
    return (mixed + 1) % (1 << 63)


def diverged(what: str, pass_number: int, batch: int) -> DivergedError:
    """The error of a run whose numbers are no longer numbers; batches count from 0, as in the log."""
    return DivergedError(
        f"training has diverged: {what} at pass {pass_number}, batch {batch}",
        hint="lower the learning rate, set `clip_norm`, or look for huge values with "
        "`clickmill data describe`; earlier checkpoints are as they were",
    )


class Stepper:
    """Trains batch after batch; one object for a whole run."""

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
        stopwatch: Stopwatch,
    ) -> None:
        self._tables = tables
        self._feeds = feeds
        self._replicas = replicas
        self._optimizer = optimizer
        self._schedule = schedule
        self._metrics = metrics
        self._options = options
        self._stopwatch = stopwatch
        self._has_batch_norm = any(
            isinstance(module, torch.nn.modules.batchnorm._BatchNorm) for module in replicas.model.modules()
        )
        self._step = 0
        self._pass_number = 0

    def run(
        self,
        crew: Crew,
        next_batch: Callable[[], Batch | None],
        after_step: Callable[[Batch, float], None],
        *,
        step: int,
        pass_number: int,
        batch: int,
    ) -> None:
        """Train on all batches of `next_batch`; `after_step` hears of each, with its loss.

        `step` updates came before in the whole run, `batch` of them in this pass.
        """
        self._step = step
        self._pass_number = pass_number
        pulled = self._fill(self._locate(next_batch))
        while pulled is not None:
            located = crew.ahead(partial(self._locate, next_batch))
            parts = cut(pulled.batch.num_rows, crew.size)
            with self._stopwatch.measure("compute"):
                computed = crew.run(
                    [partial(self._compute, worker, pulled, part) for worker, part in enumerate(parts)]
                )
            loss = sum(each.loss for each in computed)
            if not math.isfinite(loss):
                raise diverged(f"the loss is {loss}", pass_number, batch + self._step - step)
            scale = self._clip_scale(computed, pulled)
            update_dense = partial(self._update_dense, pulled, computed, scale)
            update_rows = partial(self._update_rows, pulled, computed, scale, located())
            if crew.size == 1:
                update_dense()
                following = update_rows()
            else:
                tasks: list[Callable[[], Pulled | None]] = [update_dense, update_rows]
                following = crew.run(tasks)[1]
            self._step += 1
            after_step(pulled.batch, loss)
            pulled = following

    def _locate(self, next_batch: Callable[[], Batch | None]) -> _Located | None:
        """Take the next batch and find its rows: all that need not wait for the update of the one before."""
        batch = next_batch()
        if batch is None:
            return None
        with self._stopwatch.measure("locate"):
            return _Located(batch, locate_rows(batch, self._tables, self._feeds))

    def _fill(self, located: _Located | None) -> Pulled | None:
        if located is None:
            return None
        with self._stopwatch.measure("pull"):
            return Pulled(located.batch, fill_rows(located.rows, self._tables, self._feeds))

    def _compute(self, worker: int, pulled: Pulled, part: Part) -> Computed:
        replica = self._replicas[worker]
        model = replica.model
        batch = pulled.batch
        seed_batch(model, batch_seed(self._options.seed, self._step, worker))
        features, leaves = build_features(batch, pulled.lookups, self._feeds, part, train=True)
        label_B = torch.tensor(batch.labels[part.rows, 0])
        weight_B = None if batch.weights is None else torch.tensor(batch.weights[part.rows])
        score_B = self._score(model, features) if self._options.is_progressive else None
        # A last batch of one sample has no variance: it is normalised by the running statistics.
        is_alone = part.num_rows == 1 and self._has_batch_norm
        if is_alone:
            model.eval()
        with torch.autocast("cpu", torch.bfloat16, enabled=self._options.precision == "bf16"):
            logit_B = model(features)
        if is_alone:
            model.train()
        logit_B = logit_B.float()
        loss = model.loss(logit_B, label_B, weight_B) * (part.num_rows / batch.num_rows)
        loss.backward()  # type: ignore[no-untyped-call]
        if score_B is None:
            score_B = model.predict(logit_B.detach())
        return Computed(part, loss.item(), score_B.numpy(), replica.take_gradients(), leaves)

    def _score(self, model: Model, features: Features) -> torch.Tensor:
        model.eval()
        with (
            torch.no_grad(),
            torch.autocast("cpu", torch.bfloat16, enabled=self._options.precision == "bf16"),
        ):
            score_B: torch.Tensor = model.predict(model(features).float())
        model.train()
        return score_B

    def _update_dense(self, pulled: Pulled, computed: list[Computed], scale: float) -> None:
        rate = self._options.learning_rate * self._schedule.factor(self._step, self._pass_number)
        with self._stopwatch.measure("update_dense"):
            self._optimizer.step(self._replicas.arrays, [each.gradients for each in computed], rate, scale)
        batch = pulled.batch
        labels = batch.labels[:, 0]
        self._metrics.update_parts(
            [each.scores_B for each in computed], labels, batch.weights, batch.group_keys
        )

    def _update_rows(
        self,
        pulled: Pulled,
        computed: list[Computed],
        scale: float,
        following: _Located | None,
    ) -> Pulled | None:
        factor = self._schedule.factor(self._step, self._pass_number)
        self._tables.begin_step(self._step + 1)
        with self._stopwatch.measure("update_rows"):
            if self._options.clip_norm is None:
                self._gather(computed)
            for feed, lookup in zip(self._feeds, pulled.lookups, strict=True):
                table = self._tables[feed.table]
                if table.has_statistics:
                    lookup.observe()
                table.apply(lookup, self._tables.learning_rate(feed.table) * factor, scale)
        return self._fill(following)

    def _gather(self, computed: list[Computed]) -> None:
        for each in computed:
            for leaf in each.leaves:
                leaf.gather_gradients()

    def _clip_scale(self, computed: list[Computed], pulled: Pulled) -> float:
        """Factor that brings the norm of all gradients, dense and of rows, down to `clip_norm`."""
        limit = self._options.clip_norm
        if limit is None:
            return 1.0
        self._gather(computed)
        squares = self._optimizer.square_sum([each.gradients for each in computed])
        squares += sum(lookup.gradient_square_sum() for lookup in pulled.lookups)
        norm = math.sqrt(squares)
        return min(1.0, limit / norm) if norm > 0.0 else 1.0
