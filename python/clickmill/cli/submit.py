"""`clickmill submit`: arguments in, `clickmill.submit` does the work."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from clickmill.cli import job, runs, ssh_cluster
from clickmill.cli.options import ConfigSource, Json, Overrides, talk_arguments
from clickmill.cli.output import print_json, print_text, talk
from clickmill.cli.progress import cluster_display
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from clickmill.submit.request import Outcome, Request

logger = logging.getLogger(__name__)


def submit(
    model: ConfigSource,
    backend: Annotated[
        str, typer.Option("--backend", "-b", metavar="BACKEND", help="backend.yaml: where it is trained.")
    ],
    overrides: Overrides = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be made, secrets masked; change nothing.")
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FORMAT",
            help="With --dry-run: `yaml`, `json`, or a new folder to write the files to.",
        ),
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="Come back when the job has ended, with its exit code.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Kubernetes: delete a job of the same name first.")
    ] = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Train on the cluster that a backend.yaml names.

    `Local` and `MPI` train here and print the summary, `SSH` does so on hosts; `Kubernetes` applies the
    objects of the job; `PaddleCloud` makes the submission folder and calls the platform's client. `--set`
    changes values of either file. In a process with PADDLE_PADDLEREC_ROLE=WORKER nothing is submitted: it
    trains.

    \b
    Example:
      clickmill submit -m config.yaml -b backend.yaml
      clickmill submit -m config.yaml -b backend.yaml --dry-run -o yaml
      clickmill submit -m config.yaml -b backend.yaml --set submit.k8s_trainers=4
      clickmill submit -m config.yaml -b backend.yaml --replace --wait
    """
    from clickmill.submit.worker import ROLE, is_worker

    if is_worker(os.environ):
        logger.info("%s=WORKER: training, not submitting", ROLE)
        runs.train_and_tell(model, overrides or [], json=json)
        return
    if not backend.strip():
        raise ConfigError("`--backend` is empty", hint="name a backend.yaml, or the folder that holds one")
    if output and not dry_run:
        raise ConfigError("`--output` shows what would be made", hint="give it with `--dry-run`")
    from clickmill.submit.load import load_request

    request = load_request(model, backend, overrides or (), talk_arguments())
    for note in request.check():
        logger.warning("%s", note)
    if dry_run:
        from clickmill.cli.plans import show_plan
        from clickmill.submit.plan import plan

        show_plan(plan(request), output, json=json)
        return
    if replace and request.backend.backend != "Kubernetes":
        raise ConfigError("`--replace` is for jobs on Kubernetes", hint="leave it out")
    if request.backend.backend == "Kubernetes":
        _apply(request, is_replacing=replace, is_waiting=wait, json=json)
        return
    outcome = _hand_over(request, is_waiting=wait, json=json)
    if outcome is None:
        return
    if json:
        print_json(outcome.facts)
    elif outcome.facts.get("reply"):
        print_json(outcome.facts["reply"])
    if outcome.failure is not None:
        raise outcome.failure


def _apply(request: Request, *, is_replacing: bool, is_waiting: bool, json: bool) -> None:
    """A job for Kubernetes, and its end where that is waited for."""
    from clickmill.submit.kubernetes.handing_over import hand_over

    facts = hand_over(request, is_replacing=is_replacing).facts
    name, namespace = facts["job"], facts["namespace"]
    if is_waiting:
        context = request.backend.kubernetes.context
        job.wait(name, timeout=None, namespace=namespace, context=context, json=json)
    elif json:
        print_json(facts)
    else:
        talk(f"job `{name}` in namespace `{namespace}`: {facts['change']}")
        talk(f"hint: `clickmill job status {name} -n {namespace} --watch` shows how it does")
        print_text(name)


def _hand_over(request: Request, *, is_waiting: bool, json: bool) -> Outcome | None:
    """Submit the job; None where it has been trained, and told of, already."""
    from clickmill.submit.file_system import variables

    name = request.backend.backend
    if name == "PaddleCloud":
        from clickmill.submit.paddlecloud.api import submit as submit_folder

        if is_waiting:
            raise ConfigError("PaddleCloud tells nobody here when a job ends", hint="leave out `--wait`")
        return submit_folder(request)
    if name == "Local":
        from clickmill.submit.commands import local_overrides

        os.environ.update(variables(request))
        runs.train_and_tell(request.source.model, list(local_overrides(request)), json=json)
    elif name == "MPI":
        from clickmill.submit.commands import run_mpi

        os.environ.update(variables(request))
        run_mpi(request, is_json=json)
    elif name == "SSH":
        from clickmill.submit.ssh import ssh_job

        with ssh_job(request, partial(cluster_display, is_shown=not json)) as cluster:
            ssh_cluster.train_and_tell(cluster, json=json)
    return None
