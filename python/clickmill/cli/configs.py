"""`clickmill config`: look at a configuration without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from clickmill.cli.options import ConfigSource, Json, Overrides
from clickmill.cli.output import print_json, print_text

if TYPE_CHECKING:
    from clickmill.config import Config
    from clickmill.errors import Problem

app = typer.Typer(
    help="Check and show configurations.\n\n\b\nExample:\n  clickmill config check -m config.yaml",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def check(
    model: ConfigSource,
    overrides: Overrides = None,
    files: Annotated[bool, typer.Option("--files", help="Also require that files it names exist.")] = False,
    json: Json = False,
) -> None:
    """Check a configuration and report everything that is wrong with it.

    \b
    Example:
      clickmill config check -m config.yaml
      clickmill config check -m config.yaml --set runner.0.epochs=2 --files
    """
    from clickmill.config import load_config
    from clickmill.config.checks import run_problems
    from clickmill.errors import ConfigError

    config = load_config(model, overrides=overrides or ())
    problems = run_problems(config) + (missing_files(config) if files else [])
    if problems:
        raise ConfigError.of(problems)
    if json:
        print_json({"file": config.file, "ok": True, "notes": [note.to_dict() for note in config.notes]})
    else:
        print_text(f"{config.file}: ok, runs {', '.join(config.mode)}")


@app.command()
def show(
    model: ConfigSource,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Show a configuration with all defaults filled in.

    \b
    Example:
      clickmill config show -m config.yaml
      clickmill config show -m dnn --json
    """
    from clickmill.config import load_config, plain

    values = plain(load_config(model, overrides=overrides or ()))
    if json:
        print_json(values)
    else:
        import yaml

        print_text(
            yaml.safe_dump(values, sort_keys=False, allow_unicode=True, default_flow_style=None).rstrip()
        )


def missing_files(config: Config) -> list[Problem]:
    """Problems for files that the configuration needs and that are not there."""
    from pathlib import Path

    from clickmill.data.files import find_files
    from clickmill.errors import DataError, RemoteError

    problems = []
    for index, phase in enumerate(config.phase):
        if phase.builtin is None and not Path(phase.model).is_file():
            message = f"there is no file `{phase.model}`"
            problems.append(config.problem(message, ("phase", index, "model")))
    for index, dataset in enumerate(config.dataset):
        try:
            find_files(dataset.data_path, Path())
        except (DataError, RemoteError) as error:
            problems.append(config.problem(str(error), ("dataset", index, "data_path")))
        if dataset.data_converter and not Path(dataset.data_converter).is_file():
            message = f"there is no file `{dataset.data_converter}`"
            problems.append(config.problem(message, ("dataset", index, "data_converter")))
    return problems
