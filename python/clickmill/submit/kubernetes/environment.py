"""Variables that tell a process in a pod who it is, under our names and those of older jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.config.backend.pod_values import SCRATCH, WORKING_FOLDER
from clickmill.submit.kubernetes.config_map import PSERVERS_KEY, TRAINERS_KEY

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.names import RoleName
    from clickmill.submit.kubernetes.plan import JobPlan


RETRY_ANNOTATION = "volcano.sh/job-retry-count"
"""Volcano's own, on every pod."""
GRACE_PERIOD_S = 60
"""Between being told to end and being killed: a server that leaves takes a snapshot first."""


def environment(plan: JobPlan, role: RoleName) -> list[Object]:
    """In the order in which they are written: later ones may refer to earlier ones, and users' come last."""
    word = role.upper()
    port = str(plan.settings.port)
    fixed = {
        "CLICKMILL_ROLE": word,
        "CLICKMILL_JOB": plan.names.job,
        "CLICKMILL_SERVICE": plan.names.service,
        "CLICKMILL_PORT": port,
        "CLICKMILL_METRICS_PORT": str(plan.metrics_port),
        "CLICKMILL_CACHE": SCRATCH["cache"],
        "CLICKMILL_GRACE_S": str(GRACE_PERIOD_S),
        "HOME": WORKING_FOLDER,
        "TRAINING_ROLE": word,
        "PADDLE_TRAINING_ROLE": word,
        "PADDLE_JOB_NAME": plan.names.job,
        "PADDLE_IS_LOCAL": "0",
        "PADDLE_PORT": port,
    }
    if plan.settings.insecure:
        fixed["CLICKMILL_INSECURE"] = "1"
    return [
        _field("POD_NAME", "metadata.name"),
        _field("POD_IP", "status.podIP"),
        _field("PADDLE_CURRENT_IP", "status.podIP"),
        _field("NAMESPACE", "metadata.namespace"),
        *_numbers(plan),
        *_restarts(plan),
        *({"name": name, "value": value} for name, value in {**fixed, **plan.environment}.items()),
    ]


def _numbers(plan: JobPlan) -> list[Object]:
    trainers, servers = (
        ("CLICKMILL_TRAINERS", "PADDLE_TRAINERS_NUM"),
        ("CLICKMILL_PSERVERS", "PADDLE_PSERVERS_NUM"),
    )
    if plan.is_collective:  # their number is part of what they compute, and cannot change
        return [{"name": name, "value": str(plan.role("worker").replicas)} for name in trainers]
    return [
        *(_size(plan, name, TRAINERS_KEY) for name in trainers),
        *(_size(plan, name, PSERVERS_KEY) for name in servers),
    ]


def _size(plan: JobPlan, name: str, key: str) -> Object:
    reference = {"key": key, "name": plan.names.size, "optional": False}
    return {"name": name, "valueFrom": {"configMapKeyRef": reference}}


def _restarts(plan: JobPlan) -> list[Object]:
    """How often pods of the job have been started again when this one was made, and how often they may be."""
    if not plan.is_volcano:
        return []
    return [
        _field("CLICKMILL_RESTARTS", f"metadata.annotations['{RETRY_ANNOTATION}']"),
        {"name": "CLICKMILL_MAX_RESTARTS", "value": str(plan.settings.max_restarts)},
    ]


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
