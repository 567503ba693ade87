"""A role without Volcano: an Indexed Job of plain Kubernetes.

Parameter servers are a Job, too, and not a StatefulSet: pods of a StatefulSet are started again however they
end, so servers could not leave when training is done. Pods of an Indexed Job keep their number and host name
over restarts (`NAME-pserver-0`), end when they are done, and the Job tells codes that are final from others.

There is no gang: pods start as they find room, and wait for each other. Volcano is the better choice where
jobs share a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.config.backend.pod_values import MAX_INT32
from clickmill.kube import kinds
from clickmill.submit.kubernetes.digest import with_template_digest
from clickmill.submit.kubernetes.metadata import head
from clickmill.submit.kubernetes.pod import CONTAINER, pod_template
from clickmill.submit.kubernetes.policies import FINAL_CODES

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan, RolePlan

SCHEDULER = "default-scheduler"


def indexed_job(plan: JobPlan, role: RolePlan) -> Object:
    """The Job `NAME-ROLE`."""
    spec = {
        "backoffLimit": _backoff_limit(plan, role),
        "completionMode": "Indexed",
        "completions": role.replicas,
        "manualSelector": False,
        "parallelism": role.replicas,
        "podFailurePolicy": {"rules": [_FINAL_RULE, _DISRUPTION_RULE]},
        "podReplacementPolicy": "Failed",  # no other is allowed beside a podFailurePolicy
        "suspend": False,
        "template": pod_template(plan, role, scheduler=SCHEDULER),
    }
    item = {**head(kinds.JOB, plan, plan.names.role(role.name)), "spec": spec}
    return with_template_digest(item)


_FINAL_RULE = {
    "action": "FailJob",
    "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": list(FINAL_CODES)},
}
_DISRUPTION_RULE = {
    # Drained, preempted, evicted: no fault of the job, however often it happens.
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}


def _backoff_limit(plan: JobPlan, role: RolePlan) -> int:
    """Failures of pods before the Job gives up.

    Workers of a collective job fail together: when one goes, the others lose their peer. Each such failure of
    the job is then one of every pod.
    """
    num_together = role.replicas if plan.is_collective else 1
    return min(plan.settings.max_restarts * num_together, MAX_INT32)
