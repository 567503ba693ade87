"""How many servers a job keeps: the number that pods read when they start, and `submit` later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.config_map import PSERVERS_KEY

if TYPE_CHECKING:
    from clickmill.jobs.job import Job
    from clickmill.kube.client import Cluster


def remember_servers(cluster: Cluster, job: Job, number: int) -> None:
    """Write down the number, where there is another one."""
    size = cluster.get(kinds.CONFIG_MAP, job.names.size)
    if size is not None and (size.get("data") or {}).get(PSERVERS_KEY) != str(number):
        cluster.patch(kinds.CONFIG_MAP, job.names.size, {"data": {PSERVERS_KEY: str(number)}})
