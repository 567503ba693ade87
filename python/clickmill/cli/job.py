"""`clickmill job`: look at jobs on Kubernetes, change them, and get what they have made."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clickmill.cli.options import Json
from clickmill.cli.output import console, print_json, print_text, stdout, talk
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from clickmill.jobs.logs import Following, LogOptions, Said
    from clickmill.jobs.status import JobStatus
    from clickmill.kube.client import Cluster

app = typer.Typer(
    no_args_is_help=True,
    help="Look at jobs on Kubernetes, change them, get what they have made.\n\n\b\nExample:\n"
    "  clickmill job status ctr --watch\n"
    "  clickmill job fetch ctr -o model",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the job.")]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace", "-n", metavar="NAME", help="Its namespace; that of the context where absent."
    ),
]
Context = Annotated[
    str,
    typer.Option(
        "--context", metavar="NAME", help="Context of the kubeconfig; the current one where absent."
    ),
]

_REFRESH_S = 2.0


def _cluster(context: str, namespace: str) -> Cluster:
    cluster: Cluster = import_module("clickmill.kube").connect(context, namespace)
    return cluster


@app.command("ls")
def ls(
    namespace: Namespace = "",
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Jobs of all namespaces.")
    ] = False,
    context: Context = "",
    json: Json = False,
) -> None:
    """List jobs with phase, pods, age, samples and AUC.

    \b
    Example:
      clickmill job ls
      clickmill job ls --all-namespaces --json
    """
    with _cluster(context, namespace) as cluster:
        found = import_module("clickmill.jobs.ls").job_list(cluster, is_everywhere=everywhere)
        if json:
            print_json([status.to_dict() for status in found])
        elif found:
            with stdout():
                pages = import_module("clickmill.cli.job_pages")
                console().print(pages.jobs_table(found, is_everywhere=everywhere))
        else:
            place = "the cluster" if everywhere else f"namespace `{cluster.namespace}`"
            talk(f"there are no jobs in {place}")


@app.command("status")
def status(
    name: Name,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again every two seconds, until the job is over.")
    ] = False,
    namespace: Namespace = "",
    context: Context = "",
    json: Json = False,
) -> None:
    """Show pods, speed, metrics and progress of a job; why it waits, why it failed, and what to do.

    The exit code is not 0 when the job has failed, that of the pod that failed where it is 2, 3 or 4; and 1
    when no pod can start before a person does something, for a wrong image say.

    \b
    Example:
      clickmill job status ctr
      clickmill job status ctr --watch
    """
    with _cluster(context, namespace) as cluster:
        look = import_module("clickmill.jobs.status").job_status
        found: JobStatus = _watch(cluster, name, look, json=json) if watch else look(cluster, name)
    if json and not watch:
        print_json(found.to_dict())
    elif not watch:
        with stdout():
            console().print(import_module("clickmill.cli.job_pages").status_page(found))
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _watch(cluster: Cluster, name: str, look: Any, *, json: bool) -> JobStatus:
    if json:
        while True:
            found: JobStatus = look(cluster, name)
            print_json(found.to_dict())
            if found.job.is_over:
                return found
            time.sleep(_REFRESH_S)
    page = import_module("clickmill.cli.job_pages").status_page
    with import_module("rich.live").Live(console=console(), auto_refresh=False, screen=False) as live:
        while True:
            found = look(cluster, name)
            live.update(page(found), refresh=True)
            if found.job.is_over:
                return found
            time.sleep(_REFRESH_S)


@app.command("logs")
def logs(
    name: Name,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written, until the job is over.")
    ] = False,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role", metavar="ROLE", help="Only `trainer`, or only `trainer 0`; may be given again."
        ),
    ] = None,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="Of the containers before the last restart.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, metavar="LINES", help="The last lines of each pod.")
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="What is not older: `30s`, `10m`, `2h`, `1d`.")
    ] = "",
    namespace: Namespace = "",
    context: Context = "",
    json: Json = False,
) -> None:
    """Show what all pods say, merged by time.

    With `-f`, also of pods that come later or are started again, until the job is over; the exit code is not
    0 then if it has failed.

    \b
    Example:
      clickmill job logs ctr -f
      clickmill job logs ctr --role trainer --since 10m
    """
    module = import_module("clickmill.jobs.logs")
    options: LogOptions = module.LogOptions(
        roles=tuple(role or ()),
        is_previous=previous,
        since=_moment_before(parse_duration(since)) if since else None,
        tail=tail,
    )
    if follow and previous:
        raise ConfigError("what is over cannot be followed: give `--follow` or `--previous`")
    with _cluster(context, namespace) as cluster:
        if not follow:
            _print_lines(module.read_logs(cluster, name, options), json=json)
            return
        following: Following = module.Following(cluster, name, options, talk)
        _print_lines(following, json=json)
        found: JobStatus = import_module("clickmill.jobs.status").status_of(cluster, following.job)
    _end(found)


def _print_lines(lines: Any, *, json: bool) -> None:
    screen = import_module("clickmill.launch.screen")
    is_coloured = bool(console().is_terminal and not console().no_color)
    width = len("pserver 0")
    said: Said
    with stdout():
        for said in lines:
            if json:
                print_json(said.to_dict())
                continue
            width = max(width, len(said.title))
            title = screen.coloured_name(said.title, width) if is_coloured else f"{said.title:<{width}}"
            for text in screen.readable(said.line.text):
                sys.stdout.write(f"{title} | {text}\n")
            sys.stdout.flush()


def _end(found: JobStatus) -> None:
    """Say on stderr how a job has ended, and end in the same way."""
    talk(f"job `{found.job.name}` is {found.job.phase}")
    for reason in found.reasons:
        talk(f"{reason.kind}: {reason.words}")
        if reason.remedy:
            talk(f"hint: {reason.remedy}")
    if found.exit_code:
        raise typer.Exit(found.exit_code)


@app.command("wait")
def wait(
    name: Name,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0.0, help="How long; as long as it takes where absent."
        ),
    ] = None,
    namespace: Namespace = "",
    context: Context = "",
    json: Json = False,
) -> None:
    """Wait until a job is over: exit code 0 if it is completed, another if it failed, 124 if it takes longer.

    A job of which no pod can start before a person does something is waited for a minute.

    \b
    Example:
      clickmill job wait ctr --timeout 7200
    """
    with _cluster(context, namespace) as cluster:
        module = import_module("clickmill.jobs.waiting")
        found: JobStatus = module.wait_for_end(cluster, name, talk, deadline_s=timeout)
    if json:
        print_json(found.to_dict())
    _end(found)


@app.command("scale")
def scale(
    name: Name,
    trainers: Annotated[
        int | None, typer.Option("--trainers", min=1, help="How many trainers there shall be.")
    ] = None,
    pservers: Annotated[
        int | None,
        typer.Option("--pservers", min=1, max=1024, help="How many parameter servers there shall be."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", min=0.0, help="How long to wait for buckets to move."),
    ] = 600.0,
    namespace: Namespace = "",
    context: Context = "",
    json: Json = False,
) -> None:
    """Change the number of trainers or parameter servers of a job that trains.

    Trainers come when there is room, and those that go lose nothing. To another number of servers the
    buckets move while training goes on.

    \b
    Example:
      clickmill job scale ctr --trainers 4
      clickmill job scale ctr --pservers 3
    """
    if trainers is None and pservers is None:
        raise ConfigError("scale to what?", hint="give `--trainers N`, `--pservers N`, or both")
    with _cluster(context, namespace) as cluster:
        scaled = import_module("clickmill.jobs.scale").scale_job(
            cluster, name, talk, trainers=trainers, pservers=pservers, deadline_s=timeout
        )
    if json:
        print_json(scaled.to_dict())


@app.command("fetch")
def fetch(
    name: Name,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Where to; a folder of the job's name where absent."
        ),
    ] = None,
    what: Annotated[
        str,
        typer.Option(
            "--what",
            metavar="WHAT",
            help="`checkpoint`: the newest; `pass`: the newest of a whole pass; `all`; or a path in the run.",
        ),
    ] = "checkpoint",
    image: Annotated[
        str, typer.Option("--image", help="What reads the files of a job that was stopped or deleted.")
    ] = "",
    namespace: Namespace = "",
    context: Context = "",
    json: Json = False,
) -> None:
    """Bring what a job has made to this machine, while it trains or after it.

    Every piece is checked by SHA-256, a checkpoint appears whole or not at all, and what was interrupted goes
    on. Prints the path of what was fetched.

    \b
    Example:
      clickmill job fetch ctr -o model
      clickmill job fetch ctr --what all -o run
    """
    module = import_module("clickmill.jobs.fetch")
    bar = import_module("clickmill.cli.fetch_bar").FetchBar(is_shown=not json)
    with _cluster(context, namespace) as cluster, bar:
        fetched = module.fetch_output(
            cluster, name, what, output or Path(name), tell=bar.tell, progress=bar, image=image or None
        )
    if json:
        print_json(fetched.to_dict())
    else:
        print_text(
            "\n".join(str(path) for path in fetched.paths[-1:] if fetched.checkpoint) or str(output or name)
        )


@app.command("stop")
def stop(
    name: Name,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.0,
            help="How long the snapshot and the end of the run may take; pods have 3 minutes more.",
        ),
    ] = 600.0,
    force: Annotated[
        bool, typer.Option("--force", help="Without a snapshot: the job goes on from the last one.")
    ] = False,
    namespace: Namespace = "",
    context: Context = "",
    json: Json = False,
) -> None:
    """Take a snapshot and end a job; `clickmill submit` as before goes on from there.

    \b
    Example:
      clickmill job stop ctr
    """
    with _cluster(context, namespace) as cluster:
        stopped = import_module("clickmill.jobs.stop").stop_job(
            cluster, name, talk, deadline_s=timeout, is_forced=force
        )
    if json:
        print_json(stopped.to_dict())
    elif not stopped.was_over:
        talk(f"job `{name}` is stopped; `clickmill submit` as before lets it go on")


@app.command("delete")
def delete(
    name: Name,
    keep_output: Annotated[
        bool, typer.Option("--keep-output", help="Leave the volume with checkpoints and snapshots.")
    ] = False,
    with_output: Annotated[
        bool, typer.Option("--with-output", help="Delete that volume, too, with all that is on it.")
    ] = False,
    namespace: Namespace = "",
    context: Context = "",
    json: Json = False,
) -> None:
    """Delete a job and everything that was made for it; asks about the volume that it wrote to.

    Only objects with our labels are deleted. A claim or a folder that you named yourself stays in any case.

    \b
    Example:
      clickmill job delete ctr --keep-output
    """
    if keep_output and with_output:
        raise ConfigError("give `--keep-output` or `--with-output`, not both")
    module = import_module("clickmill.jobs.delete")
    with _cluster(context, namespace) as cluster:
        if not (keep_output or with_output):
            claims = [claim["metadata"]["name"] for claim in module.output_claims(cluster, name)]
            with_output = bool(claims) and _ask_about(claims)
        deleted = module.delete_job(cluster, name, talk, is_output_deleted=with_output)
    if json:
        print_json(deleted.to_dict())
        return
    talk(f"deleted {len(deleted.objects)} objects of job `{name}`")
    for claim in deleted.kept:
        command = cluster.command(f"job delete {name} --with-output")
        talk(f"claim `{claim}` is kept; `{command}` deletes it")


def _ask_about(claims: list[str]) -> bool:
    named = ", ".join(f"`{claim}`" for claim in claims)
    if not sys.stdin.isatty():
        raise ConfigError(
            f"shall claim {named} be deleted, with all checkpoints on it?",
            hint="say `--keep-output` or `--with-output`",
        )
    return typer.confirm(f"Delete claim {named}, with all checkpoints on it?", default=False, err=True)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: str) -> float:
    """Seconds of `30s`, `10m`, `2h`, `1d` or a number. ConfigError for what is none."""
    unit = _UNITS.get(text[-1:])
    try:
        seconds = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        raise ConfigError(f"`{text}` is no time; write `30s`, `10m`, `2h` or `1d`") from None
    if not 0 <= seconds < 1e9:
        raise ConfigError(f"`{text}` is no time that can be looked back")
    return seconds


def _moment_before(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
