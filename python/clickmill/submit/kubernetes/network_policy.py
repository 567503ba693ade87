"""Who may connect to the pods of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.metadata import head

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan


def network_policy(plan: JobPlan) -> Object:
    """Each other; and anybody who has the token may read metrics and status.

    Workers of a collective job open ports of their own for each other, so all of theirs are open to the job.
    """
    among: Object = {"from": [{"podSelector": {"matchLabels": plan.names.selector}}]}
    if not plan.is_collective:
        among["ports"] = [{"port": plan.settings.port, "protocol": "TCP"}]
    metrics = {"ports": [{"port": plan.metrics_port, "protocol": "TCP"}]}
    spec = {
        "ingress": [among, metrics],
        "podSelector": {"matchLabels": plan.names.selector},
        "policyTypes": ["Ingress"],
    }
    return {**head(kinds.NETWORK_POLICY, plan, plan.names.job), "spec": spec}
