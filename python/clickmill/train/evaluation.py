"""Scoring samples with a trained model: for metrics, or for a file of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from clickmill.train.features import Part, build_features, on_device
from clickmill.train.turns import run_in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from clickmill._core import Batch, Lookup
    from clickmill.nn import Model
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
        read_rows: Callable[[Batch], list[Lookup]],
        feeds: tuple[Feed, ...],
        *,
        precision: str,
        next_batch: Callable[[], Batch | None],
        take: Callable[[Batch, Scores], None],
    ) -> None:
        self._model = model
        self._read_rows = read_rows
        self._device = next((each.device for each in model.parameters()), torch.device("cpu"))
        self._feeds = feeds
        self._precision = precision
        self._next_batch = next_batch
        self._take = take

    def pull(self, worker: int) -> _Pulled | None:
        del worker
        batch = self._next_batch()
        if batch is None:
            return None
        return _Pulled(batch, self._read_rows(batch))

    def compute(self, worker: int, pulled: _Pulled) -> Scores:
        del worker
        batch = pulled.batch
        if batch.num_rows == 0:
            return np.empty(0, np.float32)
        part = Part(0, batch.num_rows)
        features, _ = build_features(batch, pulled.lookups, self._feeds, part, train=False)
        features = on_device(features, self._device)
        is_low = self._precision == "bf16"
        with torch.no_grad(), torch.autocast(self._device.type, torch.bfloat16, enabled=is_low):
            logit_B = self._model(features)
        scores: Scores = self._model.predict(logit_B.detach().float()).cpu().numpy()
        return scores

    def commit(self, worker: int, pulled: _Pulled, computed: Scores) -> None:
        del worker
        if pulled.batch.num_rows:
            self._take(pulled.batch, computed)


def score_batches(
    model: Model,
    read_rows: Callable[[Batch], list[Lookup]],
    feeds: tuple[Feed, ...],
    next_batch: Callable[[], Batch | None],
    take: Callable[[Batch, Scores], None],
    *,
    num_workers: int,
    precision: str = "fp32",
) -> None:
    """Score every batch of `next_batch` and hand it to `take`, in order; nothing is trained.

    `read_rows` is called for one batch at a time, in order. The workers share the model: without training
    nothing writes to it.
    """
    was_training = model.training
    model.eval()
    try:
        run_in_turns(
            _ScoreStages(model, read_rows, feeds, precision=precision, next_batch=next_batch, take=take),
            num_workers,
            name="score",
        )
    finally:
        model.train(was_training)
