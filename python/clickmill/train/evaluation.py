"""Scoring samples with a trained model: for metrics, or for a file of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from clickmill.train.features import Part, build_features, read_rows
from clickmill.train.turns import run_in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, Lookup
    from clickmill.nn import Model
    from clickmill.ps.tables import TableSet
    from clickmill.train.features import Feed

    Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Member:
    """A trained model; several of them score together."""

    model: Model
    tables: TableSet


@dataclass(frozen=True)
class _Pulled:
    batch: Batch
    lookups: list[list[Lookup]]
    """Of each member."""


class _ScoreStages:
    def __init__(
        self,
        members: Sequence[Member],
        feeds: tuple[Feed, ...],
        *,
        precision: str,
        next_batch: Callable[[], Batch | None],
        take: Callable[[Batch, Scores], None],
    ) -> None:
        self._members = members
        self._feeds = feeds
        self._precision = precision
        self._next_batch = next_batch
        self._take = take

    def pull(self, worker: int) -> _Pulled | None:
        del worker
        batch = self._next_batch()
        if batch is None:
            return None
        lookups = [read_rows(batch, member.tables, self._feeds) for member in self._members]
        return _Pulled(batch, lookups)

    def compute(self, worker: int, pulled: _Pulled) -> Scores:
        del worker
        scores = [
            self._score(member.model, pulled.batch, lookups)
            for member, lookups in zip(self._members, pulled.lookups, strict=True)
        ]
        mean: Scores = torch.stack(scores).mean(dim=0).numpy()
        return mean

    def _score(self, model: Model, batch: Batch, lookups: list[Lookup]) -> torch.Tensor:
        features, _ = build_features(batch, lookups, self._feeds, Part(0, batch.num_rows), train=False)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self._precision == "bf16"):
            logit_B = model(features)
        return model.predict(logit_B.detach().float())

    def commit(self, worker: int, pulled: _Pulled, computed: Scores) -> None:
        del worker
        self._take(pulled.batch, computed)


def score_batches(
    members: Sequence[Member],
    feeds: tuple[Feed, ...],
    next_batch: Callable[[], Batch | None],
    take: Callable[[Batch, Scores], None],
    *,
    num_workers: int,
    precision: str = "fp32",
) -> None:
    """Score every batch of `next_batch` and hand it to `take`, in order; nothing is trained.

    The score of a sample is the mean over the members. The workers share the models: without training
    nothing writes to them.
    """
    were_training = [member.model.training for member in members]
    for member in members:
        member.model.eval()
    try:
        run_in_turns(
            _ScoreStages(members, feeds, precision=precision, next_batch=next_batch, take=take),
            num_workers,
            name="score",
        )
    finally:
        for member, was_training in zip(members, were_training, strict=True):
            member.model.train(was_training)
