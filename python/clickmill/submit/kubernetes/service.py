"""The headless Service that gives each pod a name: `NAME-pserver-0.NAME-pods`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.metadata import head

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan


def service(plan: JobPlan) -> Object:
    """Names are there as soon as pods have addresses: peers must find each other before anybody is ready.

    It is ours and not the one of Volcano's `svc` plugin, which Volcano deletes and makes again whenever it
    starts a pod anew: names would be gone in the very moment in which the others look for it.
    """
    ports = [
        {"name": "wire", "port": plan.settings.port, "protocol": "TCP", "targetPort": plan.settings.port},
        {"name": "metrics", "port": plan.metrics_port, "protocol": "TCP", "targetPort": plan.metrics_port},
    ]
    spec = {
        "clusterIP": "None",
        "internalTrafficPolicy": "Cluster",
        "ports": ports,
        "publishNotReadyAddresses": True,
        "selector": plan.names.selector,
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    return {**head(kinds.SERVICE, plan, plan.names.service), "spec": spec}
