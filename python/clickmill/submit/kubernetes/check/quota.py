"""Whether the quotas of the namespace have room for all pods of the job.

A pod beyond a quota is not made; Volcano tries for some minutes, and then terminates the whole job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.kube import kinds
from clickmill.submit.kubernetes.check.finding import Finding
from clickmill.submit.kubernetes.resources import amount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.kube.client import Cluster, Object
    from clickmill.submit.kubernetes.plan import JobPlan

_SHORT = {
    "cpu": "requests.cpu",
    "memory": "requests.memory",
    "ephemeral-storage": "requests.ephemeral-storage",
}


def check_quota(cluster: Cluster, plan: JobPlan) -> Iterator[Finding]:
    """One line for each quota; none where there are none."""
    try:
        quotas = cluster.list(kinds.RESOURCE_QUOTA, namespace=plan.namespace)
    except ForbiddenError:
        return
    for quota in quotas:
        yield _finding(quota, plan)


def _finding(quota: Object, plan: JobPlan) -> Finding:
    name = quota["metadata"]["name"]
    status = quota.get("status") or {}
    asked = _asked(plan)
    short = []
    for key, hard in (status.get("hard") or {}).items():
        wanted = asked.get(_SHORT.get(key, key))
        left = amount(str(hard)) - amount(str((status.get("used") or {}).get(key, "0")))
        if wanted is None:
            if key.startswith("limits."):
                short.append(f"{key} must be stated")
        elif wanted > left:
            short.append(f"{key}: {wanted:g} asked for, {left:g} of {hard} left")
    if short:
        remedy = "ask for less, state limits under `kubernetes.resources`, or have the quota raised"
        return Finding("room", f"quota `{name}`", "lacks", "; ".join(short), remedy)
    return Finding("room", f"quota `{name}`", "ok", "has room for all pods of the job")


def _asked(plan: JobPlan) -> dict[str, float]:
    """By the names of quotas; `limits.` only where every pod has one."""
    total: dict[str, float] = {"pods": float(sum(role.replicas for role in plan.roles))}
    for kind in ("requests", "limits"):
        named = [getattr(role.request, kind) for role in plan.roles]
        for key in {key for amounts in named for key in amounts}:
            if kind == "limits" and not all(key in amounts for amounts in named):
                continue
            total[f"{kind}.{key}"] = sum(
                amount(amounts.get(key, "0")) * role.replicas
                for role, amounts in zip(plan.roles, named, strict=True)
            )
    return total
