"""Room on the nodes of a cluster: what they have, what is taken, what pods ask for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.jobs.quantities import lacking, minus, parse_amounts, total
from clickmill.kube import kinds
from clickmill.kube.client import ALL_NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.jobs.quantities import Amounts
    from clickmill.kube.client import Cluster, Object

_BLOCKING = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What is free on a node."""

    name: str
    free: Amounts
    has: Amounts
    """What it has for pods in all."""
    refusal: str
    """Why the pods of the job may not come to it at all; empty where they may."""


def node_rooms(cluster: Cluster, template: Object) -> list[NodeRoom] | None:
    """Of all nodes, for pods of `template`; None where this user may not look at nodes or all pods."""
    try:
        nodes = cluster.list(kinds.NODE)
        pods = cluster.list(kinds.POD, namespace=ALL_NAMESPACES)
    except ForbiddenError:
        return None
    taken: dict[str, list[Amounts]] = {}
    for pod in pods:
        node, phase = pod["spec"].get("nodeName"), (pod.get("status") or {}).get("phase")
        if node and phase not in {"Succeeded", "Failed"}:
            taken.setdefault(node, []).append(asked_by(pod))
    rooms = []
    for node in nodes:
        name, has = node["metadata"]["name"], parse_amounts((node.get("status") or {}).get("allocatable"))
        free = minus(has, total(taken.get(name, ())))
        rooms.append(NodeRoom(name, free, has, _refusal(node, template)))
    return rooms


def asked_by(pod: Object) -> dict[str, Decimal]:
    """What a pod, or a template of pods, asks for: requests, or limits where no request is named."""
    spec = pod["spec"]
    containers = total(_asked(container) for container in spec["containers"])
    for container in spec.get("initContainers") or []:
        for resource, amount in _asked(container).items():
            containers[resource] = max(containers.get(resource, Decimal(0)), amount)
    return {**total([containers, parse_amounts(spec.get("overhead"))]), "pods": Decimal(1)}


def fitting(wanted: Sequence[Amounts], rooms: Sequence[NodeRoom]) -> int:
    """How many of the pods find room at the same time, the largest first."""
    free = [dict(room.free) for room in rooms if not room.refusal]
    placed = 0
    for amounts in sorted(wanted, key=_size, reverse=True):
        place = next((each for each in free if not lacking(amounts, each)), None)
        if place is not None:
            placed += 1
            place.update(minus(place, amounts))
    return placed


def _size(amounts: Amounts) -> tuple[Decimal, Decimal]:
    return amounts.get("cpu", Decimal(0)), amounts.get("memory", Decimal(0))


def _asked(container: Object) -> dict[str, Decimal]:
    resources = container.get("resources") or {}
    return {**parse_amounts(resources.get("limits")), **parse_amounts(resources.get("requests"))}


def _refusal(node: Object, template: Object) -> str:
    spec, labels = node.get("spec") or {}, node["metadata"].get("labels") or {}
    conditions = {each["type"]: each for each in (node.get("status") or {}).get("conditions") or []}
    if conditions.get("Ready", {}).get("status") != "True":
        return "is not ready"
    if spec.get("unschedulable"):
        return "is closed for new pods (cordoned)"
    wanted = template["spec"].get("nodeSelector") or {}
    missing = [f"{key}={value}" for key, value in wanted.items() if labels.get(key) != value]
    if missing:
        return f"lacks the label {', '.join(missing)}"
    for taint in spec.get("taints") or []:
        if taint.get("effect") in _BLOCKING and not _is_tolerated(taint, template):
            return f"has the taint {taint['key']}={taint.get('value', '')}:{taint['effect']}"
    return ""


def _is_tolerated(taint: Object, template: Object) -> bool:
    for each in template["spec"].get("tolerations") or []:
        is_key = not each.get("key") or each["key"] == taint["key"]
        is_value = each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", "")
        if is_key and is_value and each.get("effect", taint["effect"]) == taint["effect"]:
            return True
    return False
