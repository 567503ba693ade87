"""`clickmill cluster check`: what a Kubernetes cluster lacks, and the remedy for each thing."""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from typing import Annotated, Any

import typer

from clickmill.cli.exits import FAILURE
from clickmill.cli.options import Json, OptionalConfigSource
from clickmill.cli.output import print_json, show
from clickmill.errors import ConfigError

_MARKS = {
    "ok": "[green]ok[/]",
    "unknown": "[dim]unknown[/]",
    "warn": "[yellow]warn[/]",
    "lacks": "[red]lacks[/]",
}


def check(
    backend: Annotated[
        str, typer.Option("--backend", "-b", metavar="FILE", help="backend.yaml of the job to check for.")
    ] = "",
    config: OptionalConfigSource = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace, if not that of backend.yaml.")
    ] = "",
    context: Annotated[
        str, typer.Option("--context", metavar="NAME", help="Context, if not that of backend.yaml.")
    ] = "",
    pull: Annotated[
        bool, typer.Option("--pull", help="Start a pod of the image for a moment, to see that nodes get it.")
    ] = False,
    json: Json = False,
) -> None:
    """Tell what a Kubernetes cluster lacks before a job can run on it, and the remedy for each thing.

    Looks at rights, Volcano, the queue, storage, what backend.yaml names, and room for all parameter servers
    and one trainer. Changes nothing, but for the pod of `--pull`, which goes again. Fails where something is
    missing that a job cannot do without.

    \b
    Example:
      clickmill cluster check
      clickmill cluster check -b backend.yaml --pull
    """
    if pull and not backend:
        raise ConfigError("which image is pulled?", hint="`-b backend.yaml` names it")
    findings = _examine(backend, config, namespace, context, is_pulled=pull)
    is_fit = all(finding.state != "lacks" for finding in findings)
    if json:
        print_json({"ok": is_fit, "findings": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    if not is_fit:
        raise typer.Exit(FAILURE)


def _examine(
    backend_file: str, config_file: str | None, namespace: str, context: str, *, is_pulled: bool
) -> list[Any]:
    backends = import_module("clickmill.config.backend")
    if backend_file:
        backend = backends.load_backend(backend_file)
    else:
        backend = backends.BackendConfig(backend="Kubernetes")
    config = import_module("clickmill.config").load_config(config_file) if config_file else None
    api = import_module("clickmill.submit.kubernetes.check.api")
    wanted = backend.kubernetes
    connect = import_module("clickmill.kube").connect
    with connect(context or wanted.context, namespace or wanted.namespace) as cluster:
        plan = api.plan_to_check(backend, config, cluster.namespace)
        return list(api.check_cluster(cluster, plan, is_any_job=not backend_file, is_pulled=is_pulled))


def _show(findings: list[Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("", "what", "state", "found", "remedy"):
        table.add_column(column, overflow="fold")
    topic = remedy = ""
    for finding in findings:
        if topic and finding.topic != topic:
            table.add_section()
        shown = "" if finding.topic == topic else finding.topic
        # One that mends several things at once is long, and would hide what they are.
        told = "the same" if finding.remedy and finding.remedy == remedy else finding.remedy
        topic, remedy = finding.topic, finding.remedy
        row = (shown, escape(finding.what), _MARKS[finding.state], escape(finding.found))
        table.add_row(*row, escape(told))
    show(table)
