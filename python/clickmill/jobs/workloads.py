"""What makes the pods of a job, on its way out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clickmill.errors import KubernetesError
from clickmill.jobs.obstacles import lost_nodes
from clickmill.jobs.pods import list_pods
from clickmill.jobs.reasons import listed
from clickmill.kube.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.jobs.job import Job
    from clickmill.kube.client import Cluster

GONE_DEADLINE_S = 180.0
_LOOK_S = 0.5
_TELL_AGAIN_S = 30.0


def remove_workloads(cluster: Cluster, job: Job, tell: Callable[[str], None]) -> None:
    """Delete what makes the pods of a job, and wait until all of them are gone."""
    for workload in job.workloads:
        cluster.delete(kind_of(workload), workload["metadata"]["name"], propagation="Foreground")
    deadline = time.monotonic() + GONE_DEADLINE_S
    told, told_at = "", 0.0
    while True:
        left = [
            f"{workload['kind']} `{name}`"
            for workload in job.workloads
            if cluster.get(kind_of(workload), name := workload["metadata"]["name"]) is not None
        ]
        pods = list_pods(cluster, job.name)
        if not left and not pods:
            return
        titles = [pod.title for pod in pods]
        lost = lost_nodes(cluster, pods)
        why = "".join(f"; {reason.words}" for reason in lost)
        if time.monotonic() > deadline:
            hint = (
                "pods on a node that is lost stay until it is back or has been deleted: "
                "`kubectl get pods -o wide`, `kubectl delete node NAME`"
            )
            raise KubernetesError(
                f"still there after {GONE_DEADLINE_S:.0f} s: {listed([*left, *titles])}{why}",
                hint=next((reason.remedy for reason in lost), hint),
            )
        words = f"waits for {listed(titles)} to end{why}" if titles else ""
        if words and (words != told or time.monotonic() - told_at > _TELL_AGAIN_S):
            tell(words)
            told, told_at = words, time.monotonic()
        time.sleep(_LOOK_S)
