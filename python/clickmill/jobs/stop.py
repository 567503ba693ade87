"""Ending a job such that it can go on: a snapshot is taken, pods go, everything else stays."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import DeadlineError, KubernetesError, StateError
from clickmill.jobs.coordinator import ENDED, find_coordinator, training_of
from clickmill.jobs.job import find_job, look_up
from clickmill.jobs.output import remember_image
from clickmill.jobs.pods import current, is_trained, list_pods
from clickmill.jobs.size import remember_servers
from clickmill.jobs.waits import WaitTeller, waits_of
from clickmill.jobs.workloads import remove_workloads
from clickmill.kube import kinds
from clickmill.submit.kubernetes.rights import Right, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickmill.jobs.coordinator import CoordinatorProxy, Training
    from clickmill.jobs.job import Job
    from clickmill.kube.client import Cluster

    Tell = Callable[[str], None]

_LOOK_S = 0.5
_UNAVAILABLE = 503
_LINGER_S = 5.0
"""For the pod of a coordinator that nobody answers for any more."""
_PATIENCE_S = 30.0
"""For an API server that does not answer."""
_RUNNING = "running"


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
    is_asked = not (is_forced or job.is_collective or job.is_leaving)
    require(cluster, f"stop job `{name}`", _rights(job, is_asked=is_asked))
    last = _end_run(cluster, job, tell, deadline_s) if is_asked else None
    if last is not None:
        # A scaling that was interrupted, or ran out of time, has left the number of before.
        remember_servers(cluster, job, last.num_pservers)
    if job.is_leaving:
        tell(f"job `{name}` is being stopped or deleted already")
    elif job.is_collective:
        tell("a collective job has no snapshots: it goes on from its newest checkpoint")
    remember_image(cluster, job)
    remove_workloads(cluster, job, tell)
    return Stopped(
        job.name,
        job.namespace,
        None if last is None else last.snapshot,
        None if last is None else last.samples,
    )


def _rights(job: Job, *, is_asked: bool) -> Iterator[Right]:
    yield Right("delete", kinds.VOLCANO_JOB if job.is_volcano else kinds.JOB)
    yield Right("patch", kinds.CLAIM)
    if is_asked:
        yield Right("create", kinds.POD, "proxy")
        yield Right("patch", kinds.CONFIG_MAP)


def _end_run(cluster: Cluster, job: Job, tell: Tell, deadline_s: float) -> Training | None:
    """The last that was heard of the run; None where it had not begun."""
    pods = current(list_pods(cluster, job.name))
    coordinator = find_coordinator(cluster, job.name, pods, is_order=True)
    if coordinator is None:
        if not any(pod.is_running for pod in pods):
            tell("nothing runs yet: there is nothing to keep")
            return None
        if is_trained(pods):
            raise StateError(
                f"training of job `{job.name}` is over, and its pods are ending: there is nothing to stop",
                hint=f"`{cluster.command(f'job wait {job.name}')}` waits for the end",
            )
        raise StateError(
            f"pserver 0 of job `{job.name}` does not run, so no snapshot can be taken",
            hint="wait until it is back; or `--force`, which goes on from the last snapshot",
        )
    deadline = time.monotonic() + deadline_s
    try:
        before = coordinator.status()
        if before["phase"] == _RUNNING:
            # A run that is told to stop ends also where its last snapshot fails; then it is too late.
            before = _keep(job, coordinator, before, tell, deadline)
        tell(coordinator.order("stop"))
    except KubernetesError as error:
        error.hint = "try again; or `--force`, which goes on from the last snapshot"
        raise
    return _await_end(cluster, job, coordinator, before, tell, deadline=deadline)


def _keep(
    job: Job, coordinator: CoordinatorProxy, before: dict[str, Any], tell: Tell, deadline: float
) -> dict[str, Any]:
    """Have a snapshot committed while the run can still go on without; the status then."""
    known = before["snapshot"]["committed"] or 0
    coordinator.order("snapshot")
    teller = WaitTeller(tell)
    while True:
        status = coordinator.status()
        snapshot = status["snapshot"]
        if (snapshot["committed"] or 0) > known or status["phase"] != _RUNNING:
            return status
        # It is taken at the first fence from now on; a failure of before that is no news.
        is_over = status["fence"] > before["fence"] and snapshot["in_progress"] is None
        if is_over and snapshot["failure"]:
            raise StateError(
                f"job `{job.name}` trains on: no snapshot can be taken: {snapshot['failure']}",
                hint="mend that and try again; or `--force`, which goes on from the last snapshot",
            )
        _check_time(job, deadline)
        teller.look(waits_of(status))
        time.sleep(_LOOK_S)


def _check_time(job: Job, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise DeadlineError(
            f"job `{job.name}` has not come to an end in time",
            hint="it still tries; `--timeout` waits longer, `--force` goes on from the last snapshot",
        )


def _await_end(
    cluster: Cluster,
    job: Job,
    coordinator: CoordinatorProxy,
    last: dict[str, Any],
    tell: Tell,
    *,
    deadline: float,
) -> Training:
    """Until pserver 0 has ended; `last` is its status before."""
    heard = time.monotonic()
    teller = WaitTeller(tell)
    while True:
        try:
            last, heard = coordinator.status(), time.monotonic()
            teller.look(waits_of(last))
        except KubernetesError as error:
            # It has gone, which is what was asked for; its pod may linger for others to end. Where it is the
            # way to it that is gone, nothing is lost: a snapshot is committed.
            silence_s = time.monotonic() - heard
            patience_s = _LINGER_S if error.status == _UNAVAILABLE else _PATIENCE_S
            if _has_ended(cluster, job) or silence_s > patience_s:
                return training_of(last)
        if last["phase"] in ENDED and _has_ended(cluster, job):
            return training_of(last)
        _check_time(job, deadline)
        time.sleep(_LOOK_S)


def _has_ended(cluster: Cluster, job: Job) -> bool:
    now = look_up(cluster, job.name)
    if now is None or now.is_over:
        return True
    pods = current(list_pods(cluster, job.name))
    first = next((pod for pod in pods if pod.role == "pserver" and pod.index == 0), None)
    return first is None or first.ending is not None or not first.is_running
