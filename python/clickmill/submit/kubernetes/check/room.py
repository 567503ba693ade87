"""Whether the nodes have room for the gang: all parameter servers and one trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.kube import kinds
from clickmill.submit.kubernetes.check.finding import Finding
from clickmill.submit.kubernetes.resources import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clickmill.kube.client import Cluster, Object
    from clickmill.submit.kubernetes.metadata import Object as Template

Amounts = dict[str, float]

_TOPIC = "room"
_OVER = {"Succeeded", "Failed"}


def check_room(
    cluster: Cluster, nodes: list[Object], pods: Sequence[tuple[str, Amounts, Template]]
) -> Iterator[Finding]:
    """`pods` are those of the gang: role, what it asks for, spec of its template.

    Pods are put onto nodes largest first. It is an estimate: affinities and queues are not looked at.
    """
    fitting = [node for node in nodes if pods and is_allowed(node, pods[0][2])]
    if not fitting:
        yield _no_node(nodes, pods[0][2])
        return
    total = {node["metadata"]["name"]: allocatable(node) for node in fitting}
    asked = [request for _, request, _ in pods]
    words = f"{len(asked)} pods that ask for {_shown(_sum(asked))} together"
    left_out = place(total, asked)
    if left_out is not None:
        remedy = "ask for less under `kubernetes.resources` or `submit`, or add nodes"
        found = f"{words}; a pod of {_shown(left_out)} finds no room even on empty nodes"
        yield Finding(_TOPIC, "the gang", "lacks", found, remedy)
        return
    try:
        used = _used(cluster)
    except ForbiddenError:
        yield Finding(
            _TOPIC, "the gang", "ok", f"{words} fit onto empty nodes; what is free is not to be seen"
        )
        return
    free = {name: _minus(amounts, used.get(name, {})) for name, amounts in total.items()}
    if place(free, asked) is None:
        yield Finding(_TOPIC, "the gang", "ok", f"{words} fit now")
    else:
        found = f"{words}; free is {_shown(_sum(list(free.values())))} on {len(free)} nodes"
        remedy = "the job will wait until there is room for all of them; or ask for less"
        yield Finding(_TOPIC, "the gang", "warn", found, remedy)


def place(free: dict[str, Amounts], asked: list[Amounts]) -> Amounts | None:
    """First-fit, largest first; the first that finds no room, None where all do."""
    left = {name: dict(amounts) for name, amounts in free.items()}
    for request in sorted(asked, key=lambda each: sorted(each.items()), reverse=True):
        for amounts in left.values():
            if all(amounts.get(key, 0.0) >= value for key, value in request.items()):
                for key, value in request.items():
                    amounts[key] -= value
                break
        else:
            return request
    return None


def is_allowed(node: Object, spec: Template) -> bool:
    """Whether a pod may come to the node: its labels, whether it takes pods, its taints."""
    labels = node["metadata"].get("labels") or {}
    if node["spec"].get("unschedulable"):
        return False
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    taints = [taint for taint in node["spec"].get("taints") or [] if taint["effect"] != "PreferNoSchedule"]
    return all(any(_tolerates(each, taint) for each in spec["tolerations"]) for taint in taints)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    same_value = toleration.get("value", "") == (taint.get("value") or "")
    return bool(toleration.get("key") == taint["key"] and same_value)


def allocatable(node: Object) -> Amounts:
    """What pods may ask of the node."""
    return {key: amount(str(value)) for key, value in node["status"]["allocatable"].items()}


def _used(cluster: Cluster) -> dict[str, Amounts]:
    used: dict[str, Amounts] = {}
    for pod in cluster.list(kinds.POD, namespace="*"):
        node = pod["spec"].get("nodeName")
        if not node or pod["status"].get("phase") in _OVER:
            continue
        amounts = used.setdefault(node, {})
        for container in pod["spec"]["containers"]:
            for key, value in ((container.get("resources") or {}).get("requests") or {}).items():
                amounts[key] = amounts.get(key, 0.0) + amount(str(value))
        amounts["pods"] = amounts.get("pods", 0.0) + 1
    return used


def _no_node(nodes: list[Object], spec: Template) -> Finding:
    selector = ",".join(f"{key}={value}" for key, value in (spec.get("nodeSelector") or {}).items())
    found = f"pods may come to none of the {len(nodes)} nodes"
    if selector:
        remedy = f"kubectl label node NODE {selector.replace(',', ' ')}"
        return Finding(
            _TOPIC, "nodes", "lacks", f"{found}: none that is open has the labels {selector}", remedy
        )
    remedy = "kubectl get nodes; kubectl uncordon NODE, or name the taints under `kubernetes.tolerations`"
    return Finding(_TOPIC, "nodes", "lacks", f"{found}: they are cordoned or tainted", remedy)


def _sum(each: list[Amounts]) -> Amounts:
    total: Amounts = {}
    for amounts in each:
        for key, value in amounts.items():
            total[key] = total.get(key, 0.0) + value
    return total


def _minus(total: Amounts, used: Amounts) -> Amounts:
    return {key: value - used.get(key, 0.0) for key, value in total.items()}


def _shown(amounts: Amounts) -> str:
    parts = [f"{amounts.get('cpu', 0.0):g} cores", f"{amounts.get('memory', 0.0) / 2**30:.1f} GiB"]
    parts += [f"{value:g} {key}" for key, value in amounts.items() if "/" in key]
    return ", ".join(parts)
