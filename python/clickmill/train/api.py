"""What `clickmill train`, `evaluate` and `infer` do, for the command line and for Python."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from clickmill.errors import ConfigError, DataError
from clickmill.store import durable
from clickmill.train.assembly import build_parts, load_dense, load_tables
from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.evaluation import Member, score_batches
from clickmill.train.measures import scoring_metrics
from clickmill.train.run import Run, _prepare_process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clickmill._core import Batch
    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.metrics import MetricSet
    from clickmill.train.assembly import Parts
    from clickmill.train.evaluation import Scores
    from clickmill.train.observer import Observer

logger = logging.getLogger("clickmill.train")


def train(
    config: Config, *, resume: bool = False, observers: Sequence[Observer] = ()
) -> list[dict[str, Any]]:
    """Run all runners of `mode` in order; a summary for each phase of each."""
    summaries = []
    for runner in config.runners():
        for phase in config.phases_of(runner):
            if runner.is_cluster:
                raise ConfigError(
                    f"runner `{runner.name}`: class `{runner.class_name}` runs on a cluster",
                    hint="`class: train` trains on this machine",
                )
            if runner.class_name == "infer":
                summaries.append(_infer_phase(config, runner, phase))
            else:
                summaries.append(Run(config, runner, phase, observers).train(resume=resume))
    return summaries


def evaluate(
    config: Config, *, checkpoints: Sequence[Path] = (), dataset: str | None = None
) -> dict[str, Any]:
    """Metrics on a data set, by default what the run validates with, of the newest checkpoint or those named.

    Several checkpoints score together: what counts is the mean of their scores.
    """
    runner, phase = _only_phase(config)
    metrics: MetricSet | None = None
    folders = checkpoints or [_newest(config, runner, phase)]

    def take(batch: Batch, scores: Scores) -> None:
        assert metrics is not None
        metrics.update(scores, batch.labels[:, 0], batch.weights, batch.group_keys)

    scorer = _Scorer(config, runner, phase, folders, dataset)
    metrics = scoring_metrics(scorer.parts.model, scorer.parts.schema, is_exact=True)
    num_samples = scorer.score(take)
    return {"checkpoint": scorer.name, "samples": num_samples, **metrics.compute()}


def infer(
    config: Config, out: Path, *, checkpoints: Sequence[Path] = (), dataset: str | None = None
) -> dict[str, Any]:
    """Write one score a line to `out`, in the order of the samples; the file appears when it is whole.

    Several checkpoints score together, as in `evaluate`.
    """
    runner, phase = _only_phase(config)
    folders = checkpoints or [_newest(config, runner, phase)]
    return _write_all(_Scorer(config, runner, phase, folders, dataset), out)


class _Scorer:
    """One checkpoint or several, put together to score a data set."""

    def __init__(
        self,
        config: Config,
        runner: RunnerConfig,
        phase: PhaseConfig,
        folders: Sequence[Path],
        dataset: str | None,
    ) -> None:
        _prepare_process(phase.thread_num)
        self.name = ", ".join(str(folder) for folder in folders)
        dataset = dataset or runner.evaluate_dataset_name
        if dataset is not None:
            phase = phase.model_copy(update={"dataset_name": config.dataset_named(dataset).name})
        self._is_named = dataset is not None
        self._phase = phase
        self._precision = runner.precision
        found = []
        for folder in folders:
            checkpoint = open_checkpoint(folder)
            parts = build_parts(config, runner, phase, checkpoint=checkpoint)
            load_dense(parts.model, folder)
            load_tables(parts.tables, checkpoint, as_stored=True)
            found.append(parts)
        self.parts = found[0]
        self._members = [Member(parts.model, parts.tables) for parts in found]
        for folder, parts in zip(folders, found, strict=True):
            if _slots(parts) != _slots(self.parts):
                raise ConfigError(
                    f"`{folder}` and `{folders[0]}` were trained with different slots",
                    hint="only checkpoints of one schema can score together",
                )

    def score(self, take: Callable[[Batch, Scores], None]) -> int:
        """Score all samples and return how many there were."""
        parts = self.parts
        source = None if self._is_named else parts.data.open_validation(parts.schema)
        if source is None:
            source = parts.data.open_in_order(parts.schema)
            if not self._is_named:
                logger.warning(
                    "data set `%s` has no validation samples: what is scored was trained on",
                    self._phase.dataset_name,
                )
        num_samples = 0

        def count(batch: Batch, scores: Scores) -> None:
            nonlocal num_samples
            num_samples += batch.num_rows
            take(batch, scores)

        try:
            score_batches(
                self._members,
                parts.feeds,
                source.next,
                count,
                num_workers=self._phase.thread_num,
                precision=self._precision,
            )
        finally:
            source.close()
        return num_samples


def _slots(parts: Parts) -> tuple[object, object]:
    """What a batch means to the parts; initial rows may differ, as they do from seed to seed."""
    return json.loads(parts.schema.to_json())["slots"], [(feed.table, feed.dim) for feed in parts.feeds]


def _infer_phase(config: Config, runner: RunnerConfig, phase: PhaseConfig) -> dict[str, Any]:
    out = Path(runner.runner_result_dump_path or f"runs/{runner.name}/scores.txt")
    if not runner.init_model_path:
        raise ConfigError(f"runner `{runner.name}`: class `infer` needs `init_model_path`, a checkpoint")
    scorer = _Scorer(config, runner, phase, [Path(runner.init_model_path)], phase.dataset_name)
    return _write_all(scorer, out)


def _write_all(scorer: _Scorer, out: Path) -> dict[str, Any]:
    with durable.new_file(out) as file:
        num_samples = scorer.score(lambda _batch, scores: _write_scores(file, scores))
    return {"checkpoint": scorer.name, "samples": num_samples, "scores": str(out)}


def _write_scores(file: IO[bytes], scores: Scores) -> None:
    file.write("".join(f"{score:.9g}\n" for score in scores.tolist()).encode())


def _only_phase(config: Config) -> tuple[RunnerConfig, PhaseConfig]:
    runner = config.runners()[0]
    return runner, config.phases_of(runner)[0]


def _newest(config: Config, runner: RunnerConfig, phase: PhaseConfig) -> Path:
    newest = Run(config, runner, phase).archive.newest()
    if newest is None:
        raise DataError(
            f"runner `{runner.name}` has no checkpoint yet",
            hint="train first, or name one with `--checkpoint`",
        )
    return newest
