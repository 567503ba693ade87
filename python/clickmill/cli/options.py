"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


class Wants:
    """What the user asked of the output; the frame needs to know it when a command fails."""

    json = False


def _remember_json(value: bool) -> bool:
    Wants.json = Wants.json or value
    return value


Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print JSON on stdout; errors become JSON on stderr.", callback=_remember_json
    ),
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
    list[Path] | None,
    typer.Option(
        "--checkpoint",
        metavar="FOLDER",
        help="Trained model; the newest of the run where absent. Several: the mean of their scores.",
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="Data set of the configuration to score."),
]
DataPaths = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="PATH", help="Score these files in place of the data set's own."),
]
