"""One training step: a batch split over the workers, and one update of everything.

    compute   each worker: pool, forward, loss, backward on its part of the batch   side by side,
              and one thread ahead: the next batch, and where its rows are
    update    `Parameters` take the gradients and give the rows of the next batch, metrics beside

What follows the first update of a batch has seen all of it: there
is no delay, and two workers learn what one does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol

from clickmill.errors import DivergedError
from clickmill.train.compute import Pulled
from clickmill.train.parameters import Found, Update

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch
    from clickmill.train.compute import Computer
    from clickmill.train.crew import Crew
    from clickmill.train.parameters import Parameters
    from clickmill.train.stopwatch import Stopwatch

    Array = NDArray[np.float32]


class Counter(Protocol):
    """Counts scored batches; `clickmill.metrics.MetricSet` is one."""

    def update_parts(
        self,
        scores: Sequence[Array],
        labels: Array,
        weights: Array | None = None,
        groups: NDArray[np.uint64] | None = None,
    ) -> None:
        """Count one batch whose scores come in consecutive parts."""


@dataclass(frozen=True)
class _Taken(Generic[Found]):
    """A batch whose rows have been found, but not read."""

    batch: Batch
    found: Found


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
        computer: Computer,
        metrics: Counter,
        stopwatch: Stopwatch,
    ) -> None:
        self._parameters = parameters
        self._computer = computer
        self._metrics = metrics
        self._stopwatch = stopwatch

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
            computed = self._computer.compute(crew, pulled, step, ahead.start)
            loss = sum((each.loss for each in computed), 0.0)
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
            with self._stopwatch.waiting():
                following = ahead.wait()
            lookups = self._parameters.update(
                crew, update, partial(self._count, update), None if following is None else following.found
            )
            step += 1
            after_step(pulled.batch, loss)
            pulled = None
            if following is not None and lookups is not None:
                pulled = Pulled(following.batch, lookups)

    def _take(self, next_batch: Callable[[], Batch | None]) -> _Taken[Found] | None:
        """Take the next batch and find its rows: all that need not wait for the update of the one before."""
        batch = next_batch()
        return None if batch is None else _Taken(batch, self._parameters.locate(batch))

    def _count(self, update: Update) -> None:
        batch = update.batch
        self._metrics.update_parts(update.scores, batch.labels[:, 0], batch.weights, batch.group_keys)
