"""How many parameter servers a job that is submitted again has: as many as it was scaled to.

Servers hold buckets, which only the coordinator can move. So their number is never changed by an object that
is applied while they run: `clickmill job scale` does it, and `submit` leaves what that has made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clickmill.errors import StateError
from clickmill.kube import kinds
from clickmill.kube.kinds import kind_of
from clickmill.submit.kubernetes.config_map import PSERVERS_KEY, SUBMITTED_ANNOTATION
from clickmill.submit.kubernetes.names import ROLE_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.kube.client import Cluster
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan


@dataclass(frozen=True, slots=True)
class Servers:
    """Numbers of a job with parameter servers."""

    pods: int
    """That there shall be."""
    told: int
    """What pods that start read. While servers are being added it is the number of before."""
    words: str = ""
    """What there is to say about a number that is not the one of backend.yaml."""


@dataclass(frozen=True, slots=True)
class _Size:
    """What the ConfigMap of the job's sizes says."""

    told: int | None = None
    submitted: int | None = None


def settle_servers(cluster: Cluster, plan: JobPlan, old: list[Object]) -> Servers | None:
    """The number of servers to apply; None for a collective job. `old` makes pods of the job now.

    StateError where backend.yaml asks for a number that only `clickmill job scale` can bring about.
    """
    if plan.is_collective:
        return None
    name, asked = plan.names.job, plan.role("pserver").replicas
    size, live = _size(cluster, plan), _live(old)
    has = size.told if live is None else live
    if has is None or has == asked:
        return Servers(asked, asked if live is None else size.told or asked)
    if asked == size.submitted:
        words = f"job `{name}` was scaled to {has} pservers and keeps them; backend.yaml says {asked}"
        return Servers(has, size.told or has, words)
    if live is not None:
        scale = cluster.command(f"job scale {name} --pservers {asked}", plan.namespace)
        raise StateError(
            f"job `{name}` has {has} pservers and backend.yaml asks for {asked}: buckets have to move first",
            hint=f"`{scale}`",
        )
    return Servers(asked, asked)


def with_servers(plan: JobPlan, servers: Servers | None) -> JobPlan:
    """The plan with as many pods."""
    if servers is None:
        return plan
    number = servers.pods
    roles = [
        replace(role, replicas=number, min_available=number) if role.name == "pserver" else role
        for role in plan.roles
    ]
    return replace(plan, roles=tuple(roles))


def with_told(item: Object, servers: Servers | None, plan: JobPlan) -> Object:
    """The ConfigMap of the sizes with what pods shall read; other objects as they are."""
    if servers is None or kind_of(item) != kinds.CONFIG_MAP or item["metadata"]["name"] != plan.names.size:
        return item
    return {**item, "data": {**item["data"], PSERVERS_KEY: str(servers.told)}}


def has_servers(item: Object) -> bool:
    """Whether it makes pods of servers."""
    return any(True for _ in _numbers(item))


def _size(cluster: Cluster, plan: JobPlan) -> _Size:
    item = cluster.get(kinds.CONFIG_MAP, plan.names.size, namespace=plan.namespace)
    if item is None:
        return _Size()
    annotations = item["metadata"].get("annotations") or {}
    told = (item.get("data") or {}).get(PSERVERS_KEY)
    return _Size(_number(told), _number(annotations.get(SUBMITTED_ANNOTATION)))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _live(old: list[Object]) -> int | None:
    return next((number for item in old for number in _numbers(item)), None)


def _numbers(item: Object) -> Iterator[int]:
    spec = item["spec"]
    for task in spec.get("tasks") or [spec]:
        if (task["template"]["metadata"].get("labels") or {}).get(ROLE_LABEL) == "pserver":
            yield int(task["replicas"] if "replicas" in task else task["completions"])
