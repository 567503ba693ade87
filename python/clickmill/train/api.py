"""What `clickmill train`, `evaluate` and `infer` do, for the command line and for Python."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from clickmill.config.checks import run_problems
from clickmill.errors import ConfigError, DataError
from clickmill.store import durable
from clickmill.train.assembly import check_label
from clickmill.train.measures import scoring_metrics
from clickmill.train.run import Run, run_folder
from clickmill.train.scorer import Scorer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill._core import Batch
    from clickmill.config import Config, PhaseConfig, RunnerConfig
    from clickmill.metrics import MetricSet
    from clickmill.train.collective.seat import Seat
    from clickmill.train.evaluation import Scores
    from clickmill.train.observer import Observer


def train(
    config: Config, *, resume: bool = False, observers: Sequence[Observer] = ()
) -> list[dict[str, Any]]:
    """Run all runners of `mode` in order; a summary for each phase of each.

    Raises ConfigError before the first of them starts where one of them cannot run.
    """
    problems = run_problems(config)
    for index, runner in enumerate(config.runner):
        if runner.name in config.mode and runner.is_cluster:
            message = f"`{runner.class_name}` takes more than this process; start it with `clickmill train`"
            problems.append(config.problem(message, ("runner", index, "class")))
    if problems:
        raise ConfigError.of(problems)
    summaries = []
    for runner in config.runners():
        summaries += train_runner(config, runner, resume=resume, observers=observers)
    return summaries


def train_runner(
    config: Config, runner: RunnerConfig, *, resume: bool = False, observers: Sequence[Observer] = ()
) -> list[dict[str, Any]]:
    """Run one runner in this process; a summary for each phase."""
    return [
        _infer_phase(config, runner, phase)
        if runner.class_name == "infer"
        else Run(config, runner, phase, observers).train(resume=resume)
        for phase in config.phases_of(runner)
    ]


def train_rank(
    config: Config,
    runner: RunnerConfig,
    seat: Seat,
    *,
    resume: bool = False,
    observers: Sequence[Observer] = (),
) -> list[dict[str, Any]]:
    """Run a collective runner as one of its ranks; a summary for each phase, on rank 0 alone."""
    from clickmill.train.collective.rank import run_rank  # noqa: PLC0415 - only where there are ranks

    summaries = [
        run_rank(config, runner, phase, seat, resume=resume, observers=observers)
        for phase in config.phases_of(runner)
    ]
    return summaries if seat.rank == 0 else []


def evaluate(
    config: Config, *, checkpoints: Sequence[Path | str] = (), dataset: str | None = None
) -> dict[str, Any]:
    """Metrics on a data set, by default what the run validates with, of the newest checkpoint or those named.

    A runner of class `infer` names both: its `init_model_path` and the data set of its phase. Several
    checkpoints score together: what counts is the mean of their scores.
    """
    runner, phase = _first_phase(config)
    check_label(config, dataset or runner.evaluate_dataset_name or phase.dataset_name)
    metrics: MetricSet | None = None

    def take(batch: Batch, scores: Scores) -> None:
        assert metrics is not None
        metrics.update(scores, batch.labels[:, 0], batch.weights, batch.group_keys)

    scorer = _scorer(config, checkpoints, dataset)
    metrics = scoring_metrics(scorer.parts.model, scorer.parts.schema, is_exact=True)
    num_samples = scorer.score(take)
    return {"checkpoint": scorer.name, "samples": num_samples, **metrics.compute()}


def infer(
    config: Config, out: Path, *, checkpoints: Sequence[Path | str] = (), dataset: str | None = None
) -> dict[str, Any]:
    """Write one score a line to `out`, in the order of the samples; the file appears when it is whole.

    Of a sample only what the model sees is read: labels, weights and groups may be there or not. Several
    checkpoints score together, as in `evaluate`.
    """
    scorer = _scorer(config, checkpoints, dataset, reads_labels=False)
    return _write_all(config, scorer, out)


def _infer_phase(config: Config, runner: RunnerConfig, phase: PhaseConfig) -> dict[str, Any]:
    out = Path(runner.runner_result_dump_path or run_folder(runner) / "scores.txt")
    scorer = Scorer(config, runner, phase, [_named(runner)], phase.dataset_name, reads_labels=False)
    return _write_all(config, scorer, out)


def _write_all(config: Config, scorer: Scorer, out: Path) -> dict[str, Any]:
    data = scorer.parts.data
    read = [file.path for file in (*data.files, *data.validation_files) if isinstance(file.path, Path)]
    if out.exists() and any(path.exists() and out.samefile(path) for path in (*read, Path(config.file))):
        raise ConfigError(
            f"the scores would take the place of `{out}`, which is read for them",
            hint="name another file for the scores",
        )
    with durable.new_file(out) as file:
        num_samples = scorer.score(lambda _batch, scores: _write_scores(file, scores))
    return {"checkpoint": scorer.name, "samples": num_samples, "scores": str(out)}


def _write_scores(file: IO[bytes], scores: Scores) -> None:
    file.write("".join(f"{score:.9g}\n" for score in scores.tolist()).encode())


def _scorer(
    config: Config, checkpoints: Sequence[Path | str], dataset: str | None, *, reads_labels: bool = True
) -> Scorer:
    """What the first phase of the first runner would score, with what it would score it."""
    runner, phase = _first_phase(config)
    if runner.class_name == "infer":
        folders = checkpoints or [_named(runner)]
        dataset = dataset or runner.evaluate_dataset_name or phase.dataset_name
    else:
        folders = checkpoints or [_newest(config, runner, phase)]
    return Scorer(config, runner, phase, folders, dataset, reads_labels=reads_labels)


def _first_phase(config: Config) -> tuple[RunnerConfig, PhaseConfig]:
    runner = config.runners()[0]
    return runner, config.phases_of(runner)[0]


def _named(runner: RunnerConfig) -> str:
    if not runner.init_model_path:
        raise ConfigError(
            f"runner `{runner.name}`: class `infer` needs `init_model_path`, a checkpoint",
            hint="name one there, or with `--checkpoint` of `clickmill evaluate` and `clickmill infer`",
        )
    return runner.init_model_path


def _newest(config: Config, runner: RunnerConfig, phase: PhaseConfig) -> Path | str:
    """The newest checkpoint of the run: in its folders, else where they went."""
    run = Run(config, runner, phase)
    newest = run.archive.newest() or run.newest_elsewhere()
    if newest is None:
        raise DataError(
            f"runner `{runner.name}` has no checkpoint yet",
            hint="train first, or name one with `--checkpoint`",
        )
    return newest
