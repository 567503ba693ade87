"""Validation in a cluster: units are scored by whoever has leased them, and counted in one place."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from clickmill import _core
from clickmill.train.features import Part, build_features, cut

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, Lookup, Push, Session
    from clickmill.train.cluster.stream import Stream
    from clickmill.train.cluster.worker import Tools
    from clickmill.train.crew import Crew

    Scores = NDArray[np.float32]


class Scorer:
    """Scores units with the parameters that the servers hold."""

    def __init__(self, tools: Tools, session: Session, precision: str) -> None:
        self._tools = tools
        self._session = session
        self._precision = precision
        self._numbers = {name: number for number, name in enumerate(tools.tables)}

    def score(self, crew: Crew, stream: Stream) -> None:
        """Score a unit to its end; every batch's scores are counted once, with its entry in the ledger."""
        models = [replica.model for replica in self._tools.replicas.all]
        for model in models:
            model.eval()
        try:
            self._score(crew, stream)
        finally:
            for model in models:
                model.train()

    def _score(self, crew: Crew, stream: Stream) -> None:
        batch = stream.next()
        pushes: list[Push] = [] if batch is not None else [_core.Push.empty(stream.entry(None, is_last=True))]
        arrays = self._tools.replicas.arrays
        feeds = [(feed.group, self._numbers[feed.table]) for feed in self._tools.feeds]
        while batch is not None:
            ticket = self._session.locate(batch, feeds)
            _, _, lookups = self._session.step(pushes, [ticket], False, None if pushes else arrays)
            ahead = crew.ahead(stream.next)
            ahead.start()
            scores = self._compute(crew, batch, lookups[0])
            following = ahead.wait()
            pushes = [
                _core.Push.empty(
                    stream.entry(batch, is_last=following is None),
                    scores,
                    batch.labels[:, 0],
                    batch.weights,
                    batch.group_keys,
                )
            ]
            batch = following
        self._session.step(pushes, [], False)
        stream.is_ended = True

    def _compute(self, crew: Crew, batch: Batch, lookups: list[Lookup]) -> list[Scores]:
        parts = cut(batch.num_rows, crew.size)
        return crew.run(
            [partial(self._part, batch, lookups, part, worker) for worker, part in enumerate(parts)]
        )

    def _part(self, batch: Batch, lookups: list[Lookup], part: Part, worker: int) -> Scores:
        model = self._tools.replicas[worker].model
        features, _ = build_features(batch, lookups, self._tools.feeds, part, train=False)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self._precision == "bf16"):
            logit_B = model(features)
        scores: Scores = model.predict(logit_B.detach().float()).numpy()
        return scores
