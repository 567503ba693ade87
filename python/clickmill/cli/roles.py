"""`clickmill pserver` and `clickmill trainer`: the processes of a cluster, each started by itself."""

from __future__ import annotations

import json as json_module
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clickmill._sizes import parse_size
from clickmill.cli.extras import require
from clickmill.cli.options import ConfigSource, Json, Overrides
from clickmill.cli.output import print_json, print_text
from clickmill.cli.progress import training_observers
from clickmill.cli.runs import print_summary
from clickmill.errors import ConfigError
from clickmill.launch.address import parse_address
from clickmill.launch.pod.end_file import is_run_over
from clickmill.launch.role import OWN_LOG_VARIABLE

if TYPE_CHECKING:
    from clickmill.config import Config, RunnerConfig

logger = logging.getLogger("clickmill.train")

TokenFile = Annotated[
    str, typer.Option("--token-file", metavar="FILE", help="File with the secret of the cluster.")
]

MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", help="Port for /metrics, /healthz and /readyz; 0 takes a free one, absent: none."
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the tree."""
    for command in (pserver, trainer):
        app.command()(command)


def pserver(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 0,
    announce: Annotated[
        str, typer.Option("--announce", metavar="HOST:PORT", help="Where others find it, if not there.")
    ] = "",
    index: Annotated[
        int | None,
        typer.Option(
            "--index", min=0, max=1023, help="Which of the servers this is; else one that is missing."
        ),
    ] = None,
    pservers: Annotated[
        int,
        typer.Option("--pservers", min=1, max=1024, help="How many servers there are; for the first one."),
    ] = 1,
    coordinator: Annotated[
        str,
        typer.Option(
            "--coordinator", metavar="HOST:PORT", help="The first server, for all others; it has none."
        ),
    ] = "",
    snapshots: Annotated[
        Path, typer.Option("--snapshots", help="Folder of the snapshots; the same for all servers.")
    ] = Path("snapshots"),
    memory_budget: Annotated[
        str, typer.Option("--memory-budget", metavar="SIZE", help="Memory for rows: 8GB, 500MB.")
    ] = "",
    dead_after: Annotated[
        float,
        typer.Option(
            "--dead-after", metavar="SECONDS", min=0.1, help="Silence after which a member is dead."
        ),
    ] = 30.0,
    wait_for_members: Annotated[
        float,
        typer.Option(
            "--wait-for-members", metavar="SECONDS", min=0.1, help="How long to wait for those missing."
        ),
    ] = 600.0,
    gather: Annotated[
        float,
        typer.Option(
            "--gather", metavar="SECONDS", min=0.0, help="How long the start waits for all to come."
        ),
    ] = 60.0,
    token_file: TokenFile = "",
    tls_certificate: Annotated[
        str, typer.Option("--tls-certificate", metavar="FILE", help="PEM file with the certificate.")
    ] = "",
    tls_key: Annotated[str, typer.Option("--tls-key", metavar="FILE", help="PEM file with its key.")] = "",
    tls_authority: Annotated[
        str, typer.Option("--tls-authority", metavar="FILE", help="PEM file of who signs certificates.")
    ] = "",
    tls_server_name: Annotated[
        str, typer.Option("--tls-server-name", help="Name that certificates of servers are made out to.")
    ] = "clickmill",
    metrics_port: MetricsPort = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine without a token.")
    ] = False,
    json: Json = False,
) -> None:
    """Hold parameters for trainers; the first server also coordinates. Ends when the run is over.

    \b
    Example:
      clickmill pserver --port 30240 --pservers 2
      clickmill pserver --coordinator 127.0.0.1:30240 --index 1
    """
    coordinator = checked_address(coordinator) if coordinator else ""
    if index and not coordinator:
        raise ConfigError(
            f"pserver {index} needs `--coordinator`, the address of pserver 0",
            hint="only the first server, with index 0, has none",
        )
    ps = import_module("clickmill.ps.pserver")
    wire = import_module("clickmill.ps.wire")
    options = ps.PserverOptions(
        host=host,
        port=port,
        announced=announce or None,
        index=index,
        pservers=pservers,
        coordinator=coordinator or None,
        snapshots=snapshots,
        token=wire.read_token(token_file),
        tls=tls_files(tls_certificate, tls_key, tls_authority, tls_server_name),
        is_insecure=insecure,
        memory_budget=parse_size(memory_budget),
        dead_after_s=dead_after,
        wait_for_members_s=wait_for_members,
        gather_s=gather,
        metrics_port=metrics_port,
    )

    def listening(address: str, metrics: str | None) -> None:
        line = {"role": "pserver", "index": 0 if options.coordinator is None else index, "address": address}
        if metrics is not None:
            line["metrics"] = metrics
        sys.stdout.write(json_module.dumps(line) + "\n")
        sys.stdout.flush()

    words = ps.serve(options, listening)
    if not json:
        print_text(words)


def trainer(
    model: ConfigSource,
    coordinator: Annotated[
        str,
        typer.Option(
            "--coordinator",
            metavar="HOST:PORT",
            help="Address of the first server; a rank of a collective run has none.",
        ),
    ] = "",
    overrides: Overrides = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="As a rank: go on from the newest checkpoint of the run, exactly."),
    ] = False,
    name: Annotated[str, typer.Option("--name", help="What logs call it.")] = "trainer",
    token_file: TokenFile = "",
    metrics_host: Annotated[
        str, typer.Option("--metrics-host", help="Address to answer on there.")
    ] = "127.0.0.1",
    metrics_port: MetricsPort = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Speak to servers of other machines without a token.")
    ] = False,
    json: Json = False,
) -> None:
    """Train what the coordinator of a cluster gives out, until the run is over.

    With `fleet_mode: collective` there is none: this process is the rank that its environment says (RANK,
    WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or what PaddlePaddle's launchers set).

    \b
    Example:
      clickmill trainer -m config.yaml --coordinator 127.0.0.1:30240
      RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.0.0.7 MASTER_PORT=29500 clickmill trainer -m config.yaml
    """
    from clickmill.config import load_config
    from clickmill.ps.wire import read_token

    require("torch", purpose="training")
    config = load_config(model, overrides=overrides or ())
    runner = config.runners()[0]
    _check(config, runner)
    _check_place(runner, coordinator, resume=resume)
    if runner.is_collective:
        _train_rank(config, runner, resume=resume, json=json)
        return
    coordinator = checked_address(coordinator)
    phase = config.phases_of(runner)[0]
    token = read_token(token_file or runner.cluster.token_file)
    host = coordinator.rpartition(":")[0]
    if token is None and not insecure and host not in {"127.0.0.1", "localhost", "[::1]"}:
        raise ConfigError(
            f"`{coordinator}` is on another machine, and there is no token",
            hint="give --token-file, or say that it is meant with --insecure",
        )
    cluster = import_module("clickmill.train.cluster.trainer")
    monitoring = None
    if metrics_port is not None:
        monitoring = import_module("clickmill.monitoring").Monitoring(
            f"{metrics_host}:{metrics_port}", token=token, is_insecure=insecure
        )
        logger.info("trainer.monitored address=%s", monitoring.address)
    summary = cluster.ClusterTrainer(
        config,
        runner,
        phase,
        coordinator=coordinator,
        name=name,
        token=token,
        observers=training_observers(is_shown=not json),
        has_own_log=bool(os.environ.get(OWN_LOG_VARIABLE)),
        monitoring=monitoring,
        is_run_over=is_run_over,
    ).run()
    if json:
        print_json(summary)
    else:
        print_summary(summary)


def checked_address(coordinator: str) -> str:
    """Where the first server is, as it was given; ConfigError where no server can be there."""
    try:
        address = parse_address(coordinator)
        if address.port == 0:
            raise ValueError(f"`{coordinator}` has port 0, where nobody listens")
    except ValueError as error:
        raise ConfigError(
            f"`--coordinator`: {error}",
            hint="give the address that the first server prints when it listens, such as `127.0.0.1:30240`",
        ) from None
    return str(address)


def tls_files(certificate: str, key: str, authority: str, server_name: str) -> dict[str, str] | None:
    """Encryption as three options say it; None where they say nothing."""
    if not (certificate or key or authority):
        return None
    if not (certificate and key and authority):
        raise ConfigError("TLS needs all of --tls-certificate, --tls-key and --tls-authority")
    return {"certificate": certificate, "key": key, "authority": authority, "server_name": server_name}


def _check(config: Config, runner: RunnerConfig) -> None:
    """As `clickmill train` does before it starts anything; a trainer has servers whatever its class says."""
    checks = import_module("clickmill.config.checks")
    problems = checks.run_problems(config)
    if not runner.is_cluster:
        problems += checks.server_problems(config, runner)
    if problems:
        raise ConfigError.of(problems)


def _check_place(runner: RunnerConfig, coordinator: str, *, resume: bool) -> None:
    """Ranks know no coordinator, trainers of a cluster with servers need one."""
    if runner.is_collective:
        if coordinator:
            raise ConfigError(f"runner `{runner.name}` is collective: its ranks know no coordinator")
    elif not coordinator:
        raise ConfigError(
            f"runner `{runner.name}` trains with servers: give the address of the first with --coordinator",
            hint="only ranks need none: `fleet_mode: collective`",
        )
    elif resume:
        raise ConfigError("--resume is for ranks; servers go on from the snapshots that they find")


def _train_rank(config: Config, runner: RunnerConfig, *, resume: bool, json: bool) -> None:
    """One rank of a collective run; rank 0 tells what it came to."""
    seat = import_module("clickmill.launch.seat").read_seat(os.environ)
    if seat is None:
        raise ConfigError(
            f"runner `{runner.name}` is collective, but the environment does not say which rank this is",
            hint="set `RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`; or `clickmill train` with class "
            "`local_cluster_train`",
        )
    observers = training_observers(is_shown=not json)
    api = import_module("clickmill.train.api")
    summaries = api.train_rank(config, runner, seat, resume=resume, observers=observers)
    if json and summaries:
        print_json(summaries)
    for summary in () if json else summaries:
        print_summary(summary)
