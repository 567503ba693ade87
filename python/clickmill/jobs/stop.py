"""Ending a job such that it can go on: a snapshot is taken, pods go, everything else stays."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError, DeadlineError, KubernetesError, StateError
from clickmill.jobs.coordinator import find_coordinator, training_of
from clickmill.jobs.job import find_job, look_up
from clickmill.jobs.output import remember_image
from clickmill.jobs.pods import current, list_pods
from clickmill.jobs.waits import WaitTeller
from clickmill.jobs.workloads import remove_workloads

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.jobs.coordinator import CoordinatorProxy, Training
    from clickmill.jobs.job import Job
    from clickmill.kube.client import Cluster

    Tell = Callable[[str], None]

_LOOK_S = 0.5
_PATIENCE_S = 30.0
"""For a coordinator that has taken the order and does not answer any more."""
_ENDED = frozenset({"ending", "stopped"})


@dataclass(frozen=True, slots=True)
class Stopped:
    """What became of a job that was told to end."""

    name: str
    namespace: str
    snapshot: int | None
    """The last that was committed, as far as it is known."""
    samples: int | None
    was_over: bool = False
    """There was nothing to stop."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "namespace": self.namespace,
            "snapshot": self.snapshot,
            "samples": self.samples,
            "was_over": self.was_over,
        }


def stop_job(
    cluster: Cluster, name: str, tell: Tell, *, deadline_s: float = 600.0, is_forced: bool = False
) -> Stopped:
    """Take a snapshot, end the run and remove its pods; `submit` again goes on from there.

    `is_forced` does not ask for a snapshot: the run goes on from the last one. StateError where the snapshot
    cannot be asked for, DeadlineError where it is not committed in time; the job trains on in both cases.
    """
    job = find_job(cluster, name)
    if job.is_over:
        tell(f"job `{name}` is over already: it is {job.phase}")
        return Stopped(job.name, job.namespace, None, None, was_over=True)
    last = None if is_forced or job.is_collective else _end_run(cluster, job, tell, deadline_s)
    if job.is_collective:
        tell("a collective job has no snapshots: it goes on from its newest checkpoint")
    remember_image(cluster, job)
    remove_workloads(cluster, job, tell)
    return Stopped(
        job.name,
        job.namespace,
        None if last is None else last.snapshot,
        None if last is None else last.samples,
    )


def _end_run(cluster: Cluster, job: Job, tell: Tell, deadline_s: float) -> Training | None:
    """The last that was heard of the run; None where it had not begun."""
    pods = current(list_pods(cluster, job.name))
    coordinator = find_coordinator(cluster, job.name, pods, is_order=True)
    if coordinator is None:
        if not any(pod.is_running for pod in pods):
            tell("nothing runs yet: there is nothing to keep")
            return None
        raise StateError(
            f"pserver 0 of job `{job.name}` does not run, so no snapshot can be taken",
            hint="wait until it is back; or `--force`, which goes on from the last snapshot",
        )
    try:
        before = coordinator.status()
        tell(coordinator.order("stop"))
    except KubernetesError as error:
        error.hint = "try again; or `--force`, which goes on from the last snapshot"
        raise
    return _await_end(cluster, job, coordinator, before, tell, deadline_s=deadline_s)


def _await_end(
    cluster: Cluster,
    job: Job,
    coordinator: CoordinatorProxy,
    last: dict[str, Any],
    tell: Tell,
    *,
    deadline_s: float,
) -> Training:
    """Until pserver 0 has ended; `last` is its status before."""
    deadline = time.monotonic() + deadline_s
    heard = time.monotonic()
    teller = WaitTeller(tell)
    while True:
        try:
            last, heard = coordinator.status(), time.monotonic()
            teller.look(last["waiting"])
        except ClickmillError as error:
            # It has gone, which is what was asked for; unless it is the way to it that is gone.
            if _has_ended(cluster, job):
                return training_of(last)
            if time.monotonic() - heard > _PATIENCE_S:
                raise StateError(
                    f"pserver 0 was told to stop and does not answer any more: {error}",
                    hint=f"`clickmill job status {job.name}` shows it; `--force` ends the job as it is",
                ) from error
        if last["phase"] in _ENDED and _has_ended(cluster, job):
            return training_of(last)
        if time.monotonic() > deadline:
            raise DeadlineError(
                f"job `{job.name}` has not come to an end after {deadline_s:g} seconds",
                hint="it still tries; `--timeout` waits longer, `--force` goes on from the last snapshot",
            )
        time.sleep(_LOOK_S)


def _has_ended(cluster: Cluster, job: Job) -> bool:
    now = look_up(cluster, job.name)
    if now is None or now.is_over:
        return True
    pods = current(list_pods(cluster, job.name))
    first = next((pod for pod in pods if pod.role == "pserver" and pod.index == 0), None)
    return first is None or first.ending is not None or not first.is_running
