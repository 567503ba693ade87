"""One training step: a batch split over the workers, and one update of everything.

    compute   each worker: pool, forward, loss, backward on its part of the batch   side by side,
              and one thread ahead: the next batch, and where its rows are
    update    `Parameters` take the gradients and give the rows of the next batch, metrics beside

The parts' gradients are summed in a fixed order, so a run depends on the number of workers by rounding
alone, and not at all on their speed. What follows the first update of a batch has seen all of it: there
is no delay, and two workers learn what one does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic

import torch

from clickmill.errors import DivergedError
from clickmill.nn.dropout import seed_batch
from clickmill.train.features import Leaf, Part, build_features, cut
from clickmill.train.parameters import Found, Update

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, Lookup
    from clickmill.metrics import MetricSet
    from clickmill.nn import Features, Model
    from clickmill.train.crew import Crew
    from clickmill.train.features import Feed
    from clickmill.train.parameters import Parameters
    from clickmill.train.replica import Replicas
    from clickmill.train.stopwatch import Stopwatch

    Array = NDArray[np.float32]


@dataclass(frozen=True)
class StepOptions:
    """What does not change during a run."""

    precision: str
    seed: int
    is_progressive: bool


@dataclass(frozen=True)
class _Taken(Generic[Found]):
    """A batch whose rows have been found, but not read."""

    batch: Batch
    found: Found


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


class Stepper(Generic[Found]):
    """Trains batch after batch; one object for a whole run."""

    def __init__(
        self,
        *,
        parameters: Parameters[Found],
        feeds: tuple[Feed, ...],
        replicas: Replicas,
        metrics: MetricSet,
        options: StepOptions,
        stopwatch: Stopwatch,
    ) -> None:
        self._parameters = parameters
        self._feeds = feeds
        self._replicas = replicas
        self._metrics = metrics
        self._options = options
        self._stopwatch = stopwatch
        self._has_batch_norm = any(
            isinstance(module, torch.nn.modules.batchnorm._BatchNorm) for module in replicas.model.modules()
        )

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
        first_step = step
        taken = self._take(next_batch)
        pulled = None if taken is None else Pulled(taken.batch, self._parameters.fill(taken.found))
        while pulled is not None:
            ahead = crew.ahead(partial(self._take, next_batch))
            computed = self.compute(crew, pulled, step)
            loss = sum(each.loss for each in computed)
            if not math.isfinite(loss):
                raise diverged(f"the loss is {loss}", pass_number, batch + step - first_step)
            update = Update(
                step=step,
                pass_number=pass_number,
                batch=pulled.batch,
                lookups=pulled.lookups,
                gradients=[each.gradients for each in computed],
                leaves=[leaf for each in computed for leaf in each.leaves],
                scores=[each.scores_B for each in computed],
                loss=loss,
            )
            following = ahead()
            lookups = self._parameters.update(
                crew, update, partial(self._count, update), None if following is None else following.found
            )
            step += 1
            after_step(pulled.batch, loss)
            pulled = None
            if following is not None and lookups is not None:
                pulled = Pulled(following.batch, lookups)

    def compute(self, crew: Crew, pulled: Pulled, step: int) -> list[Computed]:
        """Forward and backward of a batch, one part a worker."""
        parts = cut(pulled.batch.num_rows, crew.size)
        with self._stopwatch.measure("compute"):
            return crew.run(
                [partial(self._compute, worker, pulled, part, step) for worker, part in enumerate(parts)]
            )

    def _take(self, next_batch: Callable[[], Batch | None]) -> _Taken[Found] | None:
        """Take the next batch and find its rows: all that need not wait for the update of the one before."""
        batch = next_batch()
        return None if batch is None else _Taken(batch, self._parameters.locate(batch))

    def _count(self, update: Update) -> None:
        batch = update.batch
        self._metrics.update_parts(update.scores, batch.labels[:, 0], batch.weights, batch.group_keys)

    def _compute(self, worker: int, pulled: Pulled, part: Part, step: int) -> Computed:
        replica = self._replicas[worker]
        model = replica.model
        batch = pulled.batch
        seed_batch(model, batch_seed(self._options.seed, step, worker))
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
