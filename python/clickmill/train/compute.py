"""Forward and backward: a batch cut over the workers, each part with gradients of its own.

The parts' gradients are summed in a fixed order, so a run depends on the number of workers by rounding
alone, and not at all on their speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from clickmill.nn.dropout import seed_batch
from clickmill.train.features import Leaf, Part, build_features, cut

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, Lookup
    from clickmill.nn import Features, Model
    from clickmill.train.crew import Crew
    from clickmill.train.features import Feed
    from clickmill.train.replica import Replicas
    from clickmill.train.stopwatch import Stopwatch

    Array = NDArray[np.float32]
    Beside = Callable[[], None]


@dataclass(frozen=True)
class ComputeOptions:
    """What does not change during a run."""

    precision: str
    seed: int
    is_progressive: bool
    first_worker: int = 0
    """Workers of other processes that come before those of this one."""


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


class Computer:
    """Computes batch after batch with the replicas of a net."""

    def __init__(
        self,
        *,
        feeds: tuple[Feed, ...],
        replicas: Replicas,
        options: ComputeOptions,
        stopwatch: Stopwatch,
    ) -> None:
        self._feeds = feeds
        self._replicas = replicas
        self._options = options
        self._stopwatch = stopwatch
        self._has_batch_norm = any(
            isinstance(module, torch.nn.modules.batchnorm._BatchNorm) for module in replicas.model.modules()
        )

    def compute(self, crew: Crew, pulled: Pulled, step: int, beside: Beside) -> list[Computed]:
        """Forward and backward of a batch, one part a worker; nothing where it has no samples.

        `beside` starts what else is to be done meanwhile. It is called between forward and backward: at the
        beginning all workers need the interpreter, and would wait for it.
        """
        if pulled.batch.num_rows == 0:
            return []
        parts = cut(pulled.batch.num_rows, crew.size)
        with self._stopwatch.measure("compute"):
            return crew.run(
                [
                    partial(self._compute, worker, pulled, part, step, beside)
                    for worker, part in enumerate(parts)
                ]
            )

    def _compute(self, worker: int, pulled: Pulled, part: Part, step: int, beside: Beside) -> Computed:
        replica = self._replicas[worker]
        model = replica.model
        batch = pulled.batch
        seed_batch(model, batch_seed(self._options.seed, step, self._options.first_worker + worker))
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
        if worker == 0:
            beside()
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
            torch.autocast(
                features.dense_BF.device.type, torch.bfloat16, enabled=self._options.precision == "bf16"
            ),
        ):
            score_B: torch.Tensor = model.predict(model(features).float())
        model.train()
        return score_B
