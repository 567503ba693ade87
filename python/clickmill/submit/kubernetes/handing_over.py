"""What `clickmill submit` does with a job for Kubernetes: shows its objects, or applies them."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError, MissingExtra
from clickmill.kube import connect
from clickmill.submit.kubernetes.api import manifest, manifest_yaml, submit
from clickmill.submit.kubernetes.job import access_of, plan_job
from clickmill.submit.request import Outcome

if TYPE_CHECKING:
    from clickmill.kube.client import Cluster
    from clickmill.submit.request import Request

logger = logging.getLogger(__name__)

DEFAULT_NAMESPACE = "default"


def plan(request: Request) -> Outcome:
    """The objects of the job; no cluster is asked."""
    found = plan_job(request, _namespace(request))
    facts = {"backend": "Kubernetes", "job": found.names.job, "namespace": found.namespace}
    text = manifest_yaml(found)
    return Outcome(facts, files={f"{found.names.job}.yaml": text}, objects=manifest(found))


def hand_over(request: Request, *, is_replacing: bool = False) -> Outcome:
    """Apply the objects: makes the job, scales it, or finds that it is there already."""
    with _connect(request) as cluster:
        found = plan_job(request, cluster.namespace)
        done = submit(cluster, found, access=access_of(request), replace=is_replacing, tell=logger.info)
    for each in done.objects:
        logger.info("%s `%s`: %s", each.kind, each.name, each.change)
    return Outcome({"backend": "Kubernetes", **asdict(done)})


def _connect(request: Request) -> Cluster:
    """The cluster of the job. Raises ConfigError, with the line of the context where it names one."""
    settings = request.backend.kubernetes
    try:
        return connect(settings.context, settings.namespace)
    except ConfigError as error:
        if error.problems or not settings.context:
            raise
        problem = request.backend.problem(str(error), ("kubernetes", "context"))
        raise ConfigError.of([problem], hint=error.hint) from error


def _namespace(request: Request) -> str:
    """As `connect` finds it, but a manifest can be written where no cluster is known, with a warning."""
    settings = request.backend.kubernetes
    if settings.namespace:
        return settings.namespace
    try:
        with _connect(request) as cluster:
            return cluster.namespace
    except (MissingExtra, ConfigError) as error:
        if settings.context and not isinstance(error, MissingExtra):
            raise
        logger.warning(
            "%s; the manifest is for the namespace `%s`, unless `kubernetes.namespace` names another",
            error,
            DEFAULT_NAMESPACE,
        )
        return DEFAULT_NAMESPACE
