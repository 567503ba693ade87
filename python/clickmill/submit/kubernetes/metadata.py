"""The head of every object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clickmill.kube.kinds import Kind
    from clickmill.submit.kubernetes.plan import JobPlan

Object = dict[str, Any]


def head(kind: Kind, plan: JobPlan, name: str) -> Object:
    """`apiVersion`, `kind` and `metadata` of an object of the job."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": plan.namespace, "labels": plan.names.labels},
    }
