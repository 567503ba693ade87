"""Options that several commands share."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import typer

VERBOSE_HELP = "Also tell what is of use when debugging."
QUIET_HELP = "Tell warnings and errors only."
JSON_HELP = "Print JSON on stdout; errors become JSON on stderr."


class Wants:
    """What the user asked of the output, before or after the command; the frame needs it when one fails."""

    json = False
    is_verbose = False
    is_quiet = False

    @classmethod
    def start(cls, *, json: bool, is_verbose: bool, is_quiet: bool) -> None:
        """What was asked before the command; forgets what an earlier command was asked."""
        cls.json, cls.is_verbose, cls.is_quiet = json, is_verbose, is_quiet
        cls._set_level()

    @classmethod
    def add(cls, name: str) -> None:
        """What was asked after the command."""
        setattr(cls, name, True)
        cls._set_level()

    @classmethod
    def _set_level(cls) -> None:
        level = logging.DEBUG if cls.is_verbose else logging.WARNING if cls.is_quiet else logging.INFO
        logging.getLogger("clickmill").setLevel(level)


def _remember_json(value: bool) -> bool:
    Wants.json = Wants.json or value
    return Wants.json


def _remember_verbose(value: bool) -> None:
    if value:
        Wants.add("is_verbose")


def _remember_quiet(value: bool) -> None:
    if value:
        Wants.add("is_quiet")


def _talk(
    _verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help=VERBOSE_HELP, callback=_remember_verbose, expose_value=False),
    ] = False,
    _quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help=QUIET_HELP, callback=_remember_quiet, expose_value=False)
    ] = False,
    _json: Annotated[
        bool, typer.Option("--json", help=JSON_HELP, callback=_remember_json, expose_value=False)
    ] = False,
) -> None:
    pass


def talk_arguments() -> list[str]:
    """What was asked of the output, as arguments for another command."""
    wanted = {"--verbose": Wants.is_verbose, "--quiet": Wants.is_quiet}
    return [option for option, is_wanted in wanted.items() if is_wanted]


def talk_options() -> list[Any]:
    """`-v`, `-q` and `--json` as every command has them; they are not handed to its function."""
    holder = typer.Typer(add_completion=False)
    holder.command()(_talk)
    return list(typer.main.get_command(holder).params)


Json = Annotated[
    bool,
    typer.Option("--json", help=JSON_HELP, callback=_remember_json),
]
ConfigSource = Annotated[
    str,
    typer.Option(
        "--model", "--config", "-m", metavar="CONFIG",
        help="config.yaml, a folder that holds one, or a built-in name such as `dnn`.",
    ),
]  # fmt: skip
OptionalConfigSource = Annotated[
    str | None,
    typer.Option(
        "--model", "--config", "-m", metavar="CONFIG",
        help="config.yaml, a folder that holds one, or a built-in name such as `dnn`.",
    ),
]  # fmt: skip
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE",
        help="Change one value, for example `runner.0.epochs=2`; may be given several times.",
    ),
]  # fmt: skip
Checkpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--checkpoint",
        metavar="FOLDER",
        help="Trained model, here or by URL; the newest of the run where absent. Several: their mean scores.",
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="Data set of the configuration to score."),
]
DataPaths = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="PATH", help="Score these files or URLs in place of the data set's own."),
]
