"""`clickmill train`, `evaluate`, `infer` and `report`: arguments in, `clickmill.train` does the work."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickmill.cli.extras import require
from clickmill.cli.options import Checkpoint, ConfigSource, DataPaths, Json, Overrides
from clickmill.cli.output import number_text, print_json, print_table, print_text

if TYPE_CHECKING:
    from collections.abc import Mapping


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

    \b
    Example:
      clickmill train -m config.yaml
      clickmill train -m config.yaml --set runner.0.epochs=2 --resume
    """
    from clickmill.config import load_config

    config = load_config(model, overrides=overrides or ())
    result = _training("api").train(config, resume=resume, show_progress=not json)
    _print_metrics(result, as_json=json)


def evaluate(
    model: ConfigSource,
    overrides: Overrides = None,
    checkpoint: Checkpoint = None,
    data: DataPaths = None,
    json: Json = False,
) -> None:
    """Score samples with a trained model and print the metrics.

    \b
    Example:
      clickmill evaluate -m config.yaml --data test.tsv
      clickmill evaluate -m config.yaml --checkpoint runs/train/checkpoints/3 --json
    """
    from clickmill.config import load_config

    config = load_config(model, overrides=overrides or ())
    result = _training("api").evaluate(
        config, checkpoint=checkpoint, data_path=tuple(data or ()), show_progress=not json
    )
    _print_metrics(result, as_json=json)


def infer(
    model: ConfigSource,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the scores; `runner_result_dump_path` where absent."),
    ] = None,
    overrides: Overrides = None,
    checkpoint: Checkpoint = None,
    data: DataPaths = None,
    json: Json = False,
) -> None:
    """Score samples with a trained model and write the scores to a file, one on a line.

    \b
    Example:
      clickmill infer -m config.yaml --data test.tsv --output scores.txt
    """
    from clickmill.config import load_config

    config = load_config(model, overrides=overrides or ())
    result = _training("api").infer(
        config, output=output, checkpoint=checkpoint, data_path=tuple(data or ()), show_progress=not json
    )
    _print_metrics(result, as_json=json)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or its journal.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; `report.html` in the run where absent.")
    ] = None,
    json: Json = False,
) -> None:
    """Write an HTML page with the curves of a run.

    \b
    Example:
      clickmill report runs/train
      clickmill report runs/train --output page.html
    """
    page = output or (run if run.is_dir() else run.parent) / "report.html"
    import_module("clickmill.train.report").write_report(run, page)
    if json:
        print_json({"report": str(page)})
    else:
        print_text(str(page))


def _print_metrics(result: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    rows = [
        (key, number_text(value) if isinstance(value, int | float) else str(value))
        for key, value in result.items()
    ]
    print_table(("metric", "value"), rows, numbers=("value",))
