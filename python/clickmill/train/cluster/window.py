"""Batches that a trainer has trained on by itself and not yet told of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clickmill import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clickmill._core import Push
    from clickmill.train.cluster.stream import Stream
    from clickmill.train.parameters import Update

    Floats = NDArray[np.float32]


class Window:
    """What the ledger and the metrics are to be told of the batches between two exchanges."""

    def __init__(self, *, has_scores: bool = True) -> None:
        self._has_scores = has_scores
        self._clear()

    def _clear(self) -> None:
        self.batches = 0
        self.samples = 0
        self._position: str | None = None
        self._scores: list[Floats] = []
        self._labels: list[Floats] = []
        self._weights: list[Floats] = []
        self._groups: list[NDArray[np.uint64]] = []

    def add(self, update: Update) -> None:
        """A batch was trained on."""
        batch = update.batch
        self.batches += 1
        self.samples += batch.num_rows
        self._position = batch.position
        if not self._has_scores:
            return
        self._scores += update.scores
        # Copies: the batch itself is not kept.
        self._labels.append(batch.labels[:, 0].copy())
        if batch.weights is not None:
            self._weights.append(batch.weights.copy())
        if batch.group_keys is not None:
            self._groups.append(batch.group_keys.copy())

    def take(self, stream: Stream, *, is_last: bool) -> Push:
        """One entry and all scores, to be sent with what was learnt; the window is empty then."""
        entry = stream.account(self._position, samples=self.samples, batches=self.batches, is_last=is_last)
        push = _core.Push.empty(
            entry,
            self._scores,
            np.concatenate(self._labels) if self._labels else None,
            np.concatenate(self._weights) if self._weights else None,
            np.concatenate(self._groups) if self._groups else None,
            lane=stream.lane,
        )
        self._clear()
        return push
