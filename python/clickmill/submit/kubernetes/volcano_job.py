"""The Volcano Job: all parameter servers and one trainer start together, or nothing starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.digest import with_template_digest
from clickmill.submit.kubernetes.metadata import head
from clickmill.submit.kubernetes.pod import pod_template
from clickmill.submit.kubernetes.policies import (
    collective_policies,
    job_policies,
    max_retry,
    pserver_policies,
)

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan, RolePlan

SCHEDULER = "volcano"
_TASK_RETRIES = 3
"""What the webhook fills in. It counts containers that were started again in their pod; ours never are."""


def volcano_job(plan: JobPlan) -> Object:
    """The Job `NAME`.

    Every field that Volcano's webhook would fill in is stated: it compares what is applied with what is
    there, and refuses a field that has gone as a change of the template.
    """
    settings = plan.settings
    spec: Object = {
        "maxRetry": max_retry(settings.max_restarts),
        "minAvailable": plan.min_available,
        # It gives each pod its own host name, which a template cannot. Its NetworkPolicy has the name of the
        # job, and so has ours: whenever Volcano starts a pod anew it would delete it.
        "plugins": {"svc": ["--publish-not-ready-addresses=true", "--disable-network-policy=true"]},
        "policies": collective_policies() if plan.is_collective else job_policies(),
        "queue": settings.queue,
        "schedulerName": SCHEDULER,
        "tasks": [_task(plan, role) for role in plan.roles],
    }
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    return with_template_digest({**head(kinds.VOLCANO_JOB, plan, plan.names.job), "spec": spec})


def _task(plan: JobPlan, role: RolePlan) -> Object:
    task: Object = {
        "name": role.name,
        "replicas": role.replicas,
        "minAvailable": role.min_available,
        "maxRetry": _TASK_RETRIES,
        "template": pod_template(plan, role, scheduler=SCHEDULER),
    }
    if role.name == "pserver":
        task["policies"] = pserver_policies()
    return task
