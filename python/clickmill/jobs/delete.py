"""Removing a job: all objects that were made for it, and nothing else."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import KubernetesError, NotFoundError
from clickmill.jobs.job import OURS, is_ours, look_up, no_such_job
from clickmill.jobs.output import remember_image
from clickmill.jobs.reasons import listed
from clickmill.jobs.workloads import remove_workloads
from clickmill.kube import kinds
from clickmill.submit.kubernetes.names import INSTANCE_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.kube.client import Cluster, Object
    from clickmill.kube.kinds import Kind

    Tell = Callable[[str], None]

_KINDS: tuple[Kind, ...] = (
    kinds.VOLCANO_JOB,
    kinds.JOB,
    kinds.POD,
    kinds.SERVICE,
    kinds.NETWORK_POLICY,
    kinds.CONFIG_MAP,
    kinds.SECRET,
    kinds.ROLE_BINDING,
    kinds.ROLE,
    kinds.SERVICE_ACCOUNT,
)
"""In the order in which they go: what makes others first."""
_GONE_DEADLINE_S = 60.0
_LOOK_S = 0.3


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was removed, and what was not."""

    name: str
    namespace: str
    objects: tuple[str, ...]
    """`Kind/name`."""
    kept: tuple[str, ...]
    """Claims with what the job has made."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "namespace": self.namespace,
            "objects": list(self.objects),
            "kept": list(self.kept),
        }


def output_claims(cluster: Cluster, name: str) -> list[Object]:
    """Claims that were made for the job."""
    return cluster.list(kinds.CLAIM, labels={**OURS, INSTANCE_LABEL: name})


def delete_job(cluster: Cluster, name: str, tell: Tell, *, is_output_deleted: bool) -> Deleted:
    """Delete the job and all that was made for it; claims only where that is said. NotFoundError for none.

    Objects without our labels are left alone, whatever their names.
    """
    job = look_up(cluster, name)
    found = _objects(cluster, name)
    claims = output_claims(cluster, name)
    if job is None and not found and not claims:
        raise no_such_job(cluster, name)
    if job is not None:
        remember_image(cluster, job)
        remove_workloads(cluster, job, tell)
    removed = [_remove(cluster, kind, item) for kind, item in found]
    if is_output_deleted:
        removed += [_remove(cluster, kinds.CLAIM, claim) for claim in claims]
    # A Secret of credentials has our labels, too; one that somebody made by hand has not, and stays.
    _await_gone(cluster, name, with_claims=is_output_deleted)
    kept = () if is_output_deleted else tuple(claim["metadata"]["name"] for claim in claims)
    return Deleted(name, cluster.namespace, tuple(each for each in removed if each), kept)


def _objects(cluster: Cluster, name: str) -> list[tuple[Kind, Object]]:
    found: list[tuple[Kind, Object]] = []
    for kind in _KINDS:
        try:
            items = cluster.list(kind, labels={**OURS, INSTANCE_LABEL: name})
        except NotFoundError:  # a cluster without Volcano
            continue
        found += [(kind, item) for item in items]
    return found


def _remove(cluster: Cluster, kind: Kind, item: Object) -> str:
    assert is_ours(item)
    name = item["metadata"]["name"]
    cluster.delete(kind, name)
    return f"{kind.name}/{name}"


def _await_gone(cluster: Cluster, name: str, *, with_claims: bool) -> None:
    deadline = time.monotonic() + _GONE_DEADLINE_S
    while True:
        left = [f"{kind.name} `{item['metadata']['name']}`" for kind, item in _objects(cluster, name)]
        if with_claims:
            left += [f"claim `{item['metadata']['name']}`" for item in output_claims(cluster, name)]
        if not left:
            return
        if time.monotonic() > deadline:
            raise KubernetesError(
                f"still there after {_GONE_DEADLINE_S:.0f} s: {listed(left)}",
                hint="`kubectl describe` tells what holds them; a claim stays while a pod uses it",
            )
        time.sleep(_LOOK_S)
