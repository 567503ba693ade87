"""`clickmill pod`: what the containers of a job on Kubernetes run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from clickmill.cli.logs import date_lines
from clickmill.cli.options import ConfigSource, Json, Overrides, talk_arguments


def pod(
    model: ConfigSource,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder of the run, on a volume that all pods of the job see."),
    ],
    package: Annotated[
        Path, typer.Option("--package", help="Where the files of the job are mounted; they are linked here.")
    ] = Path("/package"),
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Run the role of this pod, as PID 1 of its container, when the pods that it needs are there.

    Which role that is, and of which job, stands in the environment (CLICKMILL_ROLE, CLICKMILL_JOB, POD_NAME
    and more); `clickmill submit` writes manifests that set it. Ends with the exit code of the role, and
    leaves the reason of a failure in /dev/termination-log.

    \b
    Example:
      clickmill pod -m config.yaml --output /output/ctr
    """
    from clickmill.launch.pod.launcher import Launcher
    from clickmill.launch.role import Source

    date_lines()
    source = Source(model, tuple(overrides or ()), tuple(talk_arguments()))
    sys.exit(Launcher(source, output, package, is_json=json).run())
