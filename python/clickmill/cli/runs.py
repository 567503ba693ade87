"""`clickmill train`, `evaluate`, `infer` and `report`: arguments in, `clickmill.train` does the work."""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickmill.cli.extras import require
from clickmill.cli.options import (
    Checkpoints,
    ConfigSource,
    DataPaths,
    DatasetName,
    Json,
    Overrides,
    talk_arguments,
)
from clickmill.cli.output import print_json, print_table, print_text, talk
from clickmill.cli.progress import cluster_display, training_observers
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.config import Config, RunnerConfig
    from clickmill.train.collective.seat import Seat


def register(app: typer.Typer) -> None:
    """Adds the commands to the tree."""
    for command in (train, evaluate, infer, report):
        app.command()(command)


def _training(module: str) -> Any:
    """A module of `clickmill.train`, which needs torch."""
    require("torch", purpose="training")
    return import_module(f"clickmill.train.{module}")


def train(
    model: ConfigSource,
    overrides: Overrides = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the newest checkpoint of this run, exactly.")
    ] = False,
    json: Json = False,
) -> None:
    """Train as the runners of a configuration say.

    A runner of class `local_cluster_train` starts all processes of the run on this machine: parameter servers
    and trainers, or ranks; with `cluster_train` this process becomes the one that its environment or mpirun
    says.

    \b
    Example:
      clickmill train -m config.yaml
      clickmill train -m config.yaml --set runner.0.epochs=2 --resume
      mpirun -n 4 clickmill train -m config.yaml
    """
    train_and_tell(model, overrides or [], resume=resume, json=json)


def train_and_tell(model: str, overrides: list[str], *, resume: bool = False, json: bool) -> None:
    """Train as a configuration says, and print what it came to."""
    from clickmill.config import load_config
    from clickmill.submit.worker import worker_overrides

    config = load_config(model, overrides=overrides)
    more = worker_overrides(config, os.environ)
    if more:
        overrides = [*overrides, *more]
        config = load_config(model, overrides=overrides)
    if any(runner.is_cluster for runner in config.runners()):
        summaries = _launch(config, model, overrides, resume=resume, json=json)
        if not summaries:
            return  # this was one process of several; another one tells what it came to
    else:
        observers = training_observers(is_shown=not json)
        summaries = _training("api").train(config, resume=resume, observers=observers)
    if json:
        print_json(summaries)
    else:
        for summary in summaries:
            print_summary(summary)


def _launch(config: Config, model: str, overrides: list[str], *, resume: bool, json: bool) -> list[Any]:
    """Runners of which one or more take several processes."""
    from clickmill.launch.api import Launch
    from clickmill.launch.role import Source

    def train_here(runner: RunnerConfig) -> Any:
        observers = training_observers(is_shown=not json)
        return _training("api").train_runner(config, runner, resume=resume, observers=observers)

    def train_rank(runner: RunnerConfig, seat: Seat) -> Any:
        observers = training_observers(is_shown=not json)
        return _training("api").train_rank(config, runner, seat, resume=resume, observers=observers)

    return Launch(
        config,
        Source(model, tuple(overrides), tuple(talk_arguments())),
        train_here,
        train_rank,
        is_resumed=resume,
        is_json=json,
        new_display=partial(cluster_display, is_shown=not json),
    ).train()


def evaluate(
    model: ConfigSource,
    overrides: Overrides = None,
    checkpoint: Checkpoints = None,
    dataset: DatasetName = None,
    data: DataPaths = None,
    json: Json = False,
) -> None:
    """Score samples with a trained model and print the metrics.

    Without `--dataset` and `--data`: what the run validates with, the validation samples of its data set or
    the data set that `evaluate_dataset_name` names. Without `--checkpoint`: the newest one of the run. A
    runner of class `infer` names both, by its phase and by `init_model_path`.

    \b
    Example:
      clickmill evaluate -m config.yaml --data test.tsv
      clickmill evaluate -m config.yaml --checkpoint runs/train/checkpoints/3 --json
      clickmill evaluate -m config.yaml --checkpoint runs/a/checkpoints/3 --checkpoint runs/b/checkpoints/3
    """
    from clickmill.config import load_config

    config, dataset = choose_data(load_config(model, overrides=overrides or ()), dataset, data)
    result = _training("api").evaluate(config, checkpoints=checkpoint or (), dataset=dataset)
    if json:
        print_json(result)
    else:
        print_summary(result)


def infer(
    model: ConfigSource,
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the scores, one on a line.")],
    overrides: Overrides = None,
    checkpoint: Checkpoints = None,
    dataset: DatasetName = None,
    data: DataPaths = None,
    json: Json = False,
) -> None:
    """Score samples with a trained model and write the scores to a file, one on a line.

    \b
    Example:
      clickmill infer -m config.yaml --data test.tsv --output scores.txt
    """
    from clickmill.config import load_config

    config, dataset = choose_data(load_config(model, overrides=overrides or ()), dataset, data)
    result = _training("api").infer(config, output, checkpoints=checkpoint or (), dataset=dataset)
    if json:
        print_json(result)
    else:
        print_summary(result)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; `report.html` in the run where absent.")
    ] = None,
    json: Json = False,
) -> None:
    """Write an HTML page with the curves of a run, and the first curve as an SVG picture beside it.

    It also names the stage that bounds the run (read, dedup, pull, compute, push or wait), with the share of
    the time that goes to each.

    \b
    Example:
      clickmill report runs/train
      clickmill report runs/train --output page.html
    """
    if not run.is_dir():
        raise ConfigError(
            f"there is no folder `{run}`", hint="give the folder of a run, for example `runs/train`"
        )
    reports = import_module("clickmill.train.report")
    page = reports.write_report(run, output)
    bound = reports.bound_of(run)
    if json:
        print_json({"report": str(page), **bound.to_json()})
    else:
        talk(bound.words())
        print_text(str(page))


def choose_data(config: Config, dataset: str | None, paths: list[str] | None) -> tuple[Config, str | None]:
    """The data set to score: the one that was named, or that of the first phase with other files."""
    if not paths:
        return config, dataset
    phase = config.phases_of(config.runners()[0])[0]
    section = config.dataset_named(dataset or phase.dataset_name)
    other = section.model_copy(update={"data_path": tuple(paths), "validation": None})
    datasets = tuple(other if each is section else each for each in config.dataset)
    return config.model_copy(update={"dataset": datasets}), section.name


def print_summary(summary: Mapping[str, Any]) -> None:
    """Single values in one table; metrics of parts (`train`, `validation`) side by side in another."""
    parts = {name: value for name, value in summary.items() if isinstance(value, dict) and value}
    single = [(name, _text(value)) for name, value in summary.items() if not isinstance(value, dict)]
    print_table(("what", "value"), [row for row in single if row[1] != "-"], numbers=("value",))
    if parts:
        names = list(dict.fromkeys(name for part in parts.values() for name in part))
        rows = [(name, *(_text(part.get(name)) for part in parts.values())) for name in names]
        print_table(("metric", *parts), rows, numbers=tuple(parts))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.6f}"
    return f"{value:,.0f}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
