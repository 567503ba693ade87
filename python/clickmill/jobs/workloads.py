"""What makes the pods of a job, on its way out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clickmill.errors import KubernetesError
from clickmill.jobs.pods import list_pods
from clickmill.jobs.reasons import listed
from clickmill.kube.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.jobs.job import Job
    from clickmill.kube.client import Cluster

GONE_DEADLINE_S = 180.0
_LOOK_S = 0.5


def remove_workloads(cluster: Cluster, job: Job, tell: Callable[[str], None]) -> None:
    """Delete what makes the pods of a job, and wait until all of them are gone."""
    for workload in job.workloads:
        cluster.delete(kind_of(workload), workload["metadata"]["name"], propagation="Foreground")
    deadline = time.monotonic() + GONE_DEADLINE_S
    told: list[str] = []
    while True:
        left = [
            f"{workload['kind']} `{name}`"
            for workload in job.workloads
            if cluster.get(kind_of(workload), name := workload["metadata"]["name"]) is not None
        ]
        pods = [pod.title for pod in list_pods(cluster, job.name)]
        if not left and not pods:
            return
        if time.monotonic() > deadline:
            raise KubernetesError(
                f"still there after {GONE_DEADLINE_S:.0f} s: {listed([*left, *pods])}",
                hint="pods on a node that is lost stay until it is back or has been deleted: "
                "`kubectl get pods -o wide`, `kubectl delete node NAME`",
            )
        if pods != told and pods:
            tell(f"waits for {listed(pods)} to end")
            told = pods
        time.sleep(_LOOK_S)
