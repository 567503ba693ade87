"""All jobs of a namespace, or of a cluster, and how each is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError, NotFoundError
from clickmill.jobs.job import list_jobs
from clickmill.jobs.status import status_of
from clickmill.kube import kinds
from clickmill.kube.client import ALL_NAMESPACES

if TYPE_CHECKING:
    from clickmill.jobs.job import Job
    from clickmill.jobs.status import JobStatus
    from clickmill.kube.client import Cluster

_NUM_THREADS = 8
"""That ask at the same time: a coordinator that does not answer takes seconds."""


def job_list(cluster: Cluster, *, is_everywhere: bool = False) -> list[JobStatus]:
    """Jobs by namespace and name, with what is known of their training."""
    jobs = list_jobs(cluster, namespace=ALL_NAMESPACES if is_everywhere else None)
    if not jobs and not is_everywhere and not _is_namespace(cluster):
        raise NotFoundError(
            f"there is no namespace `{cluster.namespace}`",
            hint="`clickmill job ls --all-namespaces` lists the jobs of all",
            status=404,
        )

    def look(job: Job) -> JobStatus:
        return status_of(cluster.within(job.namespace), job, is_brief=True)

    with ThreadPoolExecutor(_NUM_THREADS) as pool:
        return list(pool.map(look, jobs))


def _is_namespace(cluster: Cluster) -> bool:
    try:
        return cluster.get(kinds.NAMESPACE, cluster.namespace) is not None
    except ForbiddenError:
        return True  # as far as this user can know
