"""Scoring samples with a trained model: for metrics, or for a file of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from clickmill.train.features import Part, build_features, read_rows
from clickmill.train.turns import run_in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, Lookup
    from clickmill.nn import Model
    from clickmill.ps.tables import TableSet
    from clickmill.train.features import Feed

    Scores = NDArray[np.float32]


@dataclass(frozen=True)
class _Pulled:
    batch: Batch
    lookups: list[Lookup]


class _ScoreStages:
    def __init__(
        self,
        model: Model,
        tables: TableSet,
        feeds: tuple[Feed, ...],
        *,
        precision: str,
        next_batch: Callable[[], Batch | None],
        take: Callable[[Batch, Scores], None],
    ) -> None:
        self._model = model
        self._tables = tables
        self._feeds = feeds
        self._precision = precision
        self._next_batch = next_batch
        self._take = take

    def pull(self, worker: int) -> _Pulled | None:
        del worker
        batch = self._next_batch()
        if batch is None:
            return None
        return _Pulled(batch, read_rows(batch, self._tables, self._feeds))

    def compute(self, worker: int, pulled: _Pulled) -> Scores:
        del worker
        batch = pulled.batch
        part = Part(0, batch.num_rows)
        features, _ = build_features(batch, pulled.lookups, self._feeds, part, train=False)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self._precision == "bf16"):
            logit_B = self._model(features)
        scores: Scores = self._model.predict(logit_B.detach().float()).numpy()
        return scores

    def commit(self, worker: int, pulled: _Pulled, computed: Scores) -> None:
        del worker
        self._take(pulled.batch, computed)


def score_batches(
    model: Model,
    tables: TableSet,
    feeds: tuple[Feed, ...],
    next_batch: Callable[[], Batch | None],
    take: Callable[[Batch, Scores], None],
    *,
    num_workers: int,
    precision: str = "fp32",
) -> None:
    """Score every batch of `next_batch` and hand it to `take`, in order; nothing is trained.

    The workers share the model: without training nothing writes to it.
    """
    was_training = model.training
    model.eval()
    try:
        run_in_turns(
            _ScoreStages(model, tables, feeds, precision=precision, next_batch=next_batch, take=take),
            num_workers,
            name="score",
        )
    finally:
        model.train(was_training)
