"""`clickmill ssh-cluster`: arguments in, `clickmill.launch.ssh_cluster` does the work."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clickmill.cli.options import Json, Overrides, talk_arguments
from clickmill.cli.output import print_json, print_text, talk
from clickmill.cli.progress import cluster_display
from clickmill.cli.runs import print_summary
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from clickmill.launch.ssh_cluster import SshCluster

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Options that are not ours are the trainers'."""


def ssh_cluster(
    context: typer.Context,
    hosts: Annotated[Path, typer.Option("--hosts", metavar="FILE", help="hosts.yaml: the machines.")],
    model: Annotated[
        str,
        typer.Option("--model", "--config", "-m", metavar="CONFIG", help="config.yaml of the package."),
    ],
    package: Annotated[
        Path | None,
        typer.Option(
            "--package", "--job_dispatch_package", "-p", metavar="FOLDER",
            help="Folder that is copied to every host; that of the configuration where absent.",
        ),
    ] = None,
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace", "--job_workspace", "-j", metavar="FOLDER",
            help="Folder that lies on every host already, in place of a package.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder for logs; `JOB<time>` where absent."),
    ] = None,
    max_restarts: Annotated[
        int, typer.Option("--max-restarts", min=0, help="How often a process that dies is started again.")
    ] = 3,
    overrides: Overrides = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Train on hosts that are reached with ssh: a parameter server and a trainer on each.

    A folder for the job is made on every host, with a copy of the package in it; logs are fetched at the end;
    Ctrl-C ends everything on all hosts. Options that this command does not know go to the trainers.

    \b
    Example:
      clickmill ssh-cluster --hosts hosts.yaml -m config.yaml
      clickmill ssh-cluster --hosts hosts.yaml -p demo/ -m config.yaml --set runner.0.epochs=2
      clickmill ssh-cluster --hosts hosts.yaml -j /data/demo -m config.yaml
    """
    from clickmill.launch.hosts import load_hosts
    from clickmill.launch.role import Source
    from clickmill.launch.ssh_cluster import SshCluster, job_name

    machines = load_hosts(hosts)
    if workspace is None:
        package, model = choose_package(package, model)
    elif package is not None:
        raise ConfigError("a job has a package or a workspace, not both", hint="leave out `-p` or `-j`")
    name = job_name()
    source = Source(model, tuple(overrides or ()), tuple(talk_arguments()))
    cluster = SshCluster(
        machines,
        source,
        output or Path(name),
        job=name,
        package=package,
        workspace=workspace,
        extra=tuple(context.args),
        new_display=partial(cluster_display, is_shown=not json),
        max_restarts=max_restarts,
    )
    train_and_tell(cluster, json=json)


def train_and_tell(cluster: SshCluster, *, json: bool) -> None:
    """Run a job to its end, and print what it came to."""
    try:
        result = cluster.train()
    finally:
        # Whoever has stopped it, or sees it fail, looks there too.
        if not json and cluster.output.is_dir():
            talk(f"logs of all hosts are in `{cluster.output}`")
    if json:
        print_json(result)
        return
    print_text(f"{result['job']} on {', '.join(result['hosts'])}")
    summary = result["summary"]
    for each in summary if isinstance(summary, list) else [summary]:
        if isinstance(each, dict):
            print_summary(each)


def choose_package(package: Path | None, model: str) -> tuple[Path, str]:
    """The folder to copy, and where the configuration lies in it; or the name of a built-in model."""
    from clickmill.config import builtin_model

    file = Path(model)
    folder = package if package is not None else (file if file.is_dir() else file.parent)
    for path in (file, folder / file):
        inside = path.resolve()
        if path.exists() and inside.is_relative_to(folder.resolve()):
            return folder, str(inside.relative_to(folder.resolve()))
    if builtin_model(model):
        return folder, model
    raise ConfigError(
        f"there is no configuration `{model}` in the package `{folder}`",
        hint="hosts see what is in the package alone; `-p` names it",
    )
