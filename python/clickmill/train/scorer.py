"""Scoring a data set with one checkpoint, or with several whose scores count together.

Checkpoints are loaded one after the other, and each scores all samples before the next one comes: a hundred
of them need no more memory than one, but for a sum of 8 bytes a sample.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clickmill import _core
from clickmill.errors import ConfigError, DataError
from clickmill.store.remote.url import shown
from clickmill.train.assembly import build_parts, load_dense, load_tables
from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.evaluation import score_batches
from clickmill.train.features import make_feeds, read_rows
from clickmill.train.remote_checkpoint import local_checkpoint
from clickmill.train.run import prepare_process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from clickmill._core import Batch
    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.data.source import BatchSource
    from clickmill.train.assembly import Parts
    from clickmill.train.checkpoint import Checkpoint
    from clickmill.train.evaluation import Scores

    Sums = NDArray[np.float64]
    Take = Callable[[Batch, Scores], None]

logger = logging.getLogger("clickmill.train")


class Scorer:
    """The checkpoints in `folders`, here or elsewhere, checked, and the data set that they shall score.

    `dataset` where none is named: what the run validates with.
    """

    def __init__(
        self,
        config: Config,
        runner: RunnerConfig,
        phase: PhaseConfig,
        folders: Sequence[Path | str],
        dataset: str | None,
        *,
        reads_labels: bool = True,
    ) -> None:
        prepare_process(phase.thread_num)
        self.name = ", ".join(shown(str(folder)) for folder in folders)
        dataset = dataset or runner.evaluate_dataset_name
        if dataset is not None:
            phase = phase.model_copy(update={"dataset_name": config.dataset_named(dataset).name})
        self._config = config
        self._runner = runner
        self._phase = phase
        self._is_named = dataset is not None
        self._reads_labels = reads_labels
        self._checkpoints = [open_checkpoint(local_checkpoint(folder)) for folder in folders]
        for other in self._checkpoints[1:]:
            if _meaning(other) != _meaning(self._checkpoints[0]):
                raise ConfigError(
                    f"`{other.folder}` and `{folders[0]}` were trained with different slots",
                    hint="only checkpoints of one schema can score together",
                )
        self.parts = self._load(self._checkpoints[0])
        """Of the checkpoint that is loaded."""

    def score(self, take: Take) -> int:
        """Hand each batch with its scores to `take`, in order; returns the number of samples.

        The score of a sample is the mean over the checkpoints.
        """
        count = len(self._checkpoints)
        if count == 1:
            return self._score_one(self.parts, take)
        sums = _Sums()
        for number, checkpoint in enumerate(self._checkpoints, start=1):
            if number > 1:
                # The one before goes first: two at a time would be twice the memory.
                del self.parts
                self.parts = self._load(checkpoint)
            if number < count:
                self._score_one(self.parts, lambda _batch, scores: sums.put(sums.add(scores)))
            else:
                self._score_one(
                    self.parts,
                    lambda batch, scores: take(batch, (sums.add(scores) / count).astype(np.float32)),
                )
            sums.end_round()
        return sums.num_samples

    def _load(self, checkpoint: Checkpoint) -> Parts:
        parts = build_parts(
            self._config,
            self._runner,
            self._phase,
            checkpoint=checkpoint,
            reads_labels=self._reads_labels,
        )
        load_dense(parts.model, checkpoint.folder)
        load_tables(parts.tables, checkpoint, as_stored=True)
        return parts

    def _score_one(self, parts: Parts, take: Take) -> int:
        num_samples = 0

        def count(batch: Batch, scores: Scores) -> None:
            nonlocal num_samples
            num_samples += batch.num_rows
            take(batch, scores)

        source = self._open(parts)
        try:
            score_batches(
                parts.model,
                partial(read_rows, tables=parts.tables, feeds=parts.feeds),
                parts.feeds,
                source.next,
                count,
                num_workers=self._phase.thread_num,
                precision=self._runner.precision,
            )
        finally:
            source.close()
        return num_samples

    def _open(self, parts: Parts) -> BatchSource:
        source = None if self._is_named else parts.data.open_validation(parts.schema)
        if source is not None:
            return source
        if not self._is_named:
            logger.warning(
                "data set `%s` has no validation samples: what is scored was trained on",
                self._phase.dataset_name,
            )
        return parts.data.open_in_order(parts.schema)


class _Sums:
    """Scores of all samples added up over rounds; batches come in the same order in each of them."""

    def __init__(self) -> None:
        self.num_samples = 0
        """Of a round."""
        self._is_first = True
        self._last: deque[Sums] = deque()
        self._next: deque[Sums] = deque()

    def add(self, scores: Scores) -> Sums:
        """The sum of a batch with its scores of this round."""
        if self._is_first:
            self.num_samples += len(scores)
            return scores.astype(np.float64)
        if not self._last or len(self._last[0]) != len(scores):
            raise _changed()
        total = self._last.popleft()
        total += scores
        return total

    def put(self, total: Sums) -> None:
        """Keep a sum for the next round."""
        self._next.append(total)

    def end_round(self) -> None:
        """All batches have been scored once more."""
        if self._last:
            raise _changed()
        self._last, self._next = self._next, self._last
        self._is_first = False


def _changed() -> DataError:
    return DataError(
        "the samples are not those that the checkpoint before has scored",
        hint="leave the files alone while several checkpoints score them",
    )


def _meaning(checkpoint: Checkpoint) -> tuple[object, object]:
    """What a batch means to a checkpoint; initial rows may differ, as they do from seed to seed."""
    text = (checkpoint.folder / "schema.json").read_text(encoding="utf-8")
    feeds = make_feeds(_core.Schema(text))
    return json.loads(text)["slots"], [(feed.table, feed.dim) for feed in feeds]
