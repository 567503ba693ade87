"""Waiting for the end of a job, with words about what happens meanwhile."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from clickmill.errors import ClusterUnreachableError, DeadlineError, NotFoundError, StateError
from clickmill.jobs.failures import bad_ends
from clickmill.jobs.job import find_job, look_up
from clickmill.jobs.pods import current, list_pods
from clickmill.jobs.status import find_reasons, status_of, stuck_reasons

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clickmill.jobs.job import Job
    from clickmill.jobs.reasons import Reason
    from clickmill.jobs.status import JobStatus
    from clickmill.kube.client import Cluster

    Tell = Callable[[str], None]

LOOK_S = 2.0
_PATIENCE_S = 120.0
"""For an API server that does not answer: control planes are started again."""
_STUCK_S = 60.0
"""For a job that cannot start: registries have bad moments, and nodes try again."""


def wait_for_end(
    cluster: Cluster,
    name: str,
    tell: Tell,
    *,
    deadline_s: float | None = None,
    stuck_s: float = _STUCK_S,
) -> JobStatus:
    """How the job is when it is over.

    DeadlineError where that takes longer, NotFoundError where it is deleted meanwhile, StateError where it
    cannot start for `stuck_s` and a person must do something.
    """
    job = find_job(cluster, name)
    began = time.monotonic()
    teller = Teller(cluster, tell, stuck_s=stuck_s)
    while not job.is_over:
        teller.look(job)
        left = None if deadline_s is None else began + deadline_s - time.monotonic()
        if left is not None and left <= 0:
            raise DeadlineError(
                f"job `{name}` is not over after {deadline_s:g} seconds: it is {job.phase}",
                hint=f"`{cluster.command(f'job status {name}')}` tells how far it is",
            )
        time.sleep(LOOK_S if left is None else min(LOOK_S, left))
        job = look_again(cluster, name, tell)
    return status_of(cluster, job)


def look_again(cluster: Cluster, name: str, tell: Tell, *, patience_s: float = _PATIENCE_S) -> Job:
    """The job as it is now; waits for an API server that is away for a while."""
    deadline = time.monotonic() + patience_s
    is_told = False
    while True:
        try:
            job = look_up(cluster, name)
        except ClusterUnreachableError as error:
            if time.monotonic() > deadline:
                raise
            if not is_told:
                tell(f"{error}; waiting for it")
                is_told = True
            time.sleep(LOOK_S)
            continue
        if job is None:
            raise NotFoundError(f"job `{name}` was deleted meanwhile", status=404)
        return job


class Teller:
    """Says what is new about a job each time that it is looked at."""

    def __init__(self, cluster: Cluster, tell: Tell, *, stuck_s: float = _STUCK_S) -> None:
        self._cluster = cluster
        self._tell = tell
        self._phase = ""
        self._reasons: set[str] = set()
        self._stuck_s = stuck_s
        self._stuck_since: float | None = None

    def look(self, job: Job) -> None:
        """Say the phase where it has changed, and why the job waits where that is new.

        StateError where it has been unable to start for long, and only a person can change that.
        """
        if job.phase != self._phase:
            self._tell(f"job `{job.name}` is {job.phase}")
            self._phase = job.phase
        try:
            pods = list_pods(self._cluster, job.name)
            found = find_reasons(self._cluster, job, pods, bad_ends(self._cluster, job, pods))
        except ClusterUnreachableError:
            return  # the next look at the job finds out
        for reason in found:
            # Amounts change all the time; what is short is news only once.
            key = f"{reason.kind} {reason.words.partition(':')[0]}"
            if key not in self._reasons:
                self._tell(reason.words + (f"; {reason.remedy}" if reason.remedy else ""))
        self._reasons = {f"{reason.kind} {reason.words.partition(':')[0]}" for reason in found}
        self._check(job.name, stuck_reasons(job, current(pods), found))

    def _check(self, name: str, stuck: Sequence[Reason]) -> None:
        now = time.monotonic()
        if not stuck:
            self._stuck_since = None
            return
        self._stuck_since = self._stuck_since or now
        if now - self._stuck_since >= self._stuck_s:
            raise StateError(
                f"job `{name}` cannot start: {stuck[0].words}",
                hint=f"nobody waits for it any more, and it stays as it is; {stuck[0].remedy}",
            )
