"""Which nodes pods may come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickmill.config.backend import Toleration
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan

LOST_NODE_S = 60
"""How long a pod stays on a node that is not ready. The cluster's own default is five minutes, in which the
job would wait for a parameter server that is gone."""
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def node_selector(plan: JobPlan) -> dict[str, str]:
    """Labels of the user; where output is a folder of a node, also those of that node."""
    model_node = plan.settings.model_node if plan.settings.output.host_path else {}
    return {**plan.settings.node_selector, **model_node}


def tolerations(plan: JobPlan) -> list[Object]:
    """Those of the user, and how long to stay on a node that is lost."""
    own = [_toleration(each) for each in plan.settings.tolerations]
    taken = {each.get("key") for each in own}
    lost = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_NODE_S}
        for key in _LOST
        if key not in taken
    ]
    return [*own, *lost]


def affinity(plan: JobPlan) -> Object | None:
    """All pods on one node, where the output can be written from one node alone."""
    output = plan.settings.output
    if output.host_path or output.claim or output.access_mode != "ReadWriteOnce":
        return None
    term = {
        "labelSelector": {"matchLabels": plan.names.selector},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _toleration(toleration: Toleration) -> Object:
    found = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.toleration_seconds,
    }
    return {key: value for key, value in found.items() if value not in ("", None)}
