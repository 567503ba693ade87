"""Ask a cluster for everything before anything is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.kube import kinds
from clickmill.submit.kubernetes.metadata import head
from clickmill.submit.kubernetes.pod import pod_template

if TYPE_CHECKING:
    from clickmill.kube.client import Cluster
    from clickmill.submit.kubernetes.plan import JobPlan


def try_pods(cluster: Cluster, plan: JobPlan) -> None:
    """Raises RefusedError where a pod of the job could not be made.

    A Job is taken whatever its pods are: what a quota, a limit range or the security standard of the
    namespace has against them would show only when its controller makes them. Volcano tries for some minutes,
    and then terminates the job.
    """
    for role in plan.roles:
        template = pod_template(plan, role, scheduler="default-scheduler")
        pod = head(kinds.POD, plan, f"{plan.names.role(role.name)}-trial")
        # The account of the job is not there yet; each namespace has this one.
        account = {"serviceAccountName": "default", "automountServiceAccountToken": False}
        try:
            cluster.create({**pod, "spec": {**template["spec"], **account}}, is_trial=True)
        except ForbiddenError:
            return  # who may not make pods may still make jobs
