"""Everything that a person asks about a job, gathered from where it is known."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClusterUnreachableError, KubernetesError
from clickmill.jobs.coordinator import find_coordinator
from clickmill.jobs.failures import bad_ends, failure_code, failure_reasons, pods_with_causes
from clickmill.jobs.gang import gang_reasons, is_gang_placed
from clickmill.jobs.job import find_job
from clickmill.jobs.moments import seconds_between
from clickmill.jobs.obstacles import lost_nodes, obstacles
from clickmill.jobs.pods import current, is_trained, list_pods
from clickmill.jobs.reasons import Reason
from clickmill.jobs.summary import run_summary
from clickmill.jobs.waits import waiting_reasons
from clickmill.launch.pod.verdict import FAILURE
from clickmill.store.durable import FULL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickmill.jobs.coordinator import Training
    from clickmill.jobs.failures import BadEnd
    from clickmill.jobs.job import Job
    from clickmill.jobs.pods import Pod
    from clickmill.jobs.summary import Summary
    from clickmill.kube.client import Cluster


_UNAVAILABLE = 503
_STARTS_WITHIN_S = 60.0
"""How long a pserver may take before it answers; images are there by then."""
TRAINING_OVER = "training is over, and the pods are ending"
"""A silence that needs no explanation."""
_LASTING = frozenset({"image", "volume", "quota", "access"})
"""Kinds of reasons that only a person can remove; room comes by itself."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job at one moment."""

    job: Job
    pods: tuple[Pod, ...]
    """The newest of every number."""
    training: Training | None
    silence: str | None
    """Why there is nothing to say about the training, where there should be."""
    summary: Summary | None
    """Of a run that has ended well."""
    reasons: tuple[Reason, ...]
    num_failures: Mapping[str, int]
    """By pod, as in `trainer 0`."""
    exit_code: int
    """0 unless the job has failed, or cannot start before a person does something."""

    @property
    def age_s(self) -> float:
        """Since it was made, or as long as it took."""
        return seconds_between(self.job.created, self.job.ended)

    @property
    def num_running(self) -> int:
        return sum(self.num_running_of(role) for role in self.job.roles)

    @property
    def has_lost_summary(self) -> bool:
        """A run has ended well, and the pods that told what it came to are gone."""
        return self.job.phase == "Completed" and not any(pod.role != "pserver" for pod in self.pods)

    def num_running_of(self, role: str) -> int:
        """Pods of a role that run, without those that are on their way out."""
        return sum(pod.role == role and pod.is_running and not pod.is_leaving for pod in self.pods)

    def num_restarts_of(self, pod: Pod) -> int:
        """How often it was started again, in its pod or as another one, after it had failed."""
        num_failures = self.num_failures.get(pod.title, 0)
        is_down = pod.ending is not None and pod.ending.code != 0
        return max(pod.num_restarts, num_failures - is_down)

    @property
    def samples(self) -> int | None:
        """Trained over the run, as far as it is known."""
        if self.training is not None:
            return self.training.samples
        return None if self.summary is None else int(self.summary["samples"])

    @property
    def auc(self) -> float | None:
        """Of the stage under way, or of the last one."""
        found = self.training.auc if self.training is not None else (self.summary or {}).get("auc")
        return None if found is None else float(found)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        job = self.job
        return {
            "name": job.name,
            "namespace": job.namespace,
            "scheduler": "volcano" if job.is_volcano else "default",
            "queue": job.queue,
            "phase": job.phase,
            "message": job.message,
            "is_leaving": job.is_leaving,
            "created": job.created,
            "age_s": round(self.age_s, 1),
            "ended": job.ended,
            "retries": job.num_retries,
            "max_retries": job.max_retries,
            "roles": {
                role: {
                    "replicas": size.replicas,
                    "min_available": size.min_available,
                    "running": self.num_running_of(role),
                }
                for role, size in job.roles.items()
            },
            "samples": self.samples,
            "auc": self.auc,
            "training": None if self.training is None else self.training.to_dict(),
            "summary": self.summary,
            "pods": [pod_dict(pod, self.num_restarts_of(pod)) for pod in self.pods],
            "reasons": [reason.to_dict() for reason in self.reasons],
            "exit_code": self.exit_code,
        }


def pod_dict(pod: Pod, num_restarts: int) -> dict[str, Any]:
    """A pod for `--json`."""
    return {
        "name": pod.name,
        "role": pod.role,
        "index": pod.index,
        "node": pod.node,
        "state": pod.state,
        "detail": pod.detail,
        "ready": pod.is_ready,
        "restarts": num_restarts,
        "age_s": round(seconds_between(pod.created), 1),
        "exit_code": None if pod.ending is None else pod.ending.code,
        "last_words": None if pod.ending is None else pod.ending.message,
    }


def job_status(cluster: Cluster, name: str) -> JobStatus:
    """How a job is. NotFoundError where there is none."""
    return status_of(cluster, find_job(cluster, name))


def status_of(cluster: Cluster, job: Job, *, is_brief: bool = False) -> JobStatus:
    """How `job` is; `is_brief` leaves out why it does not go on."""
    pods = list_pods(cluster, job.name) if job.workloads else []
    newest = current(pods)
    if job.phase == "Pending" and not job.is_volcano and any(pod.is_running for pod in newest):
        # The controller of plain Jobs counts its pods late when it is busy.
        job = replace(job, phase="Running")
    summary = run_summary(newest)
    training, silence = _training(cluster, job, newest)
    if summary is not None:
        silence = None  # the run is over, though pods are on their way out still
    # All that `ls` needs to know of failures is that there are some.
    ends = [] if is_brief or not job.workloads else bad_ends(cluster, job, pods)
    newest = pods_with_causes(newest, ends)
    reasons = () if is_brief else tuple(find_reasons(cluster, job, pods, ends, training))
    return JobStatus(
        job=job,
        pods=tuple(newest),
        training=training,
        silence=silence,
        summary=None if training is not None else summary,
        reasons=reasons,
        num_failures=Counter(end.title for end in ends),
        exit_code=_exit_code(job, newest, ends, reasons),
    )


def _exit_code(job: Job, pods: Sequence[Pod], ends: Sequence[BadEnd], reasons: Sequence[Reason]) -> int:
    if job.phase == "Failed":
        return failure_code(ends)
    return FAILURE if stuck_reasons(job, pods, reasons) else 0


def stuck_reasons(job: Job, pods: Sequence[Pod], reasons: Sequence[Reason]) -> list[Reason]:
    """Why no pod of the job can start before a person does something; none where one has started."""
    if job.is_over or any(pod.has_started for pod in pods):
        return []
    return [reason for reason in reasons if reason.kind in _LASTING]


def find_reasons(
    cluster: Cluster,
    job: Job,
    pods: Sequence[Pod],
    ends: Sequence[BadEnd],
    training: Training | None = None,
) -> list[Reason]:
    """Why a job does not run as it should, the weightiest first."""
    if job.is_leaving:
        return lost_nodes(cluster, current(pods))
    if job.phase in {"Completed", "Stopped", "Stopping", "Deleted"}:
        return []
    failures = failure_reasons(job, ends)
    if job.phase == "Failed":
        return failures
    newest = current(pods)
    found = [*obstacles(cluster, job, newest), *failures]
    is_missing = len([pod for pod in newest if pod.node]) < job.num_pods
    if is_missing and not any(reason.kind in {"quota", "access", "volume"} for reason in found):
        found += [
            reason if not is_gang_placed(job, newest) else _elastic(reason)
            for reason in gang_reasons(cluster, job, newest)
        ]
    if training is not None:
        found += [
            *_server_reasons(cluster, job, training),
            *_snapshot_reasons(training),
            *waiting_reasons(job, newest, training.waiting),
        ]
    return found


def _server_reasons(cluster: Cluster, job: Job, training: Training) -> list[Reason]:
    """Servers that have buckets and are not made again: somebody has changed their number past us."""
    replicas = job.roles["pserver"].replicas
    if training.scaling_to is not None or training.num_pservers <= replicas:
        return []
    words = (
        f"the run has {training.num_pservers} pservers, and the job makes pods for {replicas} of them, as "
        "where a manifest of before it was scaled is applied"
    )
    scale = cluster.command(f"job scale {job.name} --pservers {training.num_pservers}")
    return [Reason("pod", words, f"`{scale}` makes the others again")]


def _snapshot_reasons(training: Training) -> list[Reason]:
    """A run trains on without snapshots, but would lose what it has done since the last one."""
    if not training.snapshot_failure:
        return []
    since = "none has ever been taken" if training.snapshot is None else f"the last is {training.snapshot}"
    is_full = any(os.strerror(number) in training.snapshot_failure for number in FULL)
    remedy = "make room on the output volume: it goes on by itself then" if is_full else None
    words = f"no snapshot can be taken, {since}: {training.snapshot_failure}"
    return [Reason("snapshot", words, remedy)]


def _elastic(reason: Reason) -> Reason:
    return Reason(reason.kind, f"trains with fewer trainers than asked for: {reason.words}", reason.remedy)


def _training(cluster: Cluster, job: Job, pods: Sequence[Pod]) -> tuple[Training | None, str | None]:
    if job.is_collective or job.is_over:
        return None, None
    try:
        coordinator = find_coordinator(cluster, job.name, pods)
        if coordinator is not None:
            return coordinator.training(), None
    except KubernetesError as error:
        # The API server has just listed the pods: what does not answer in time is the pod behind it.
        if error.status != _UNAVAILABLE and not isinstance(error, ClusterUnreachableError):
            return None, str(error)
        return None, _silence(job, pods)
    return None, TRAINING_OVER if is_trained(pods) and not job.is_leaving else None


def _silence(job: Job, pods: Sequence[Pod]) -> str | None:
    if job.phase == "Completing" or job.is_leaving:
        return None
    if is_trained(pods):
        return TRAINING_OVER
    first = next(pod for pod in pods if pod.role == "pserver" and pod.index == 0)
    if first.is_leaving:
        return "pserver 0 is on its way out; where training is not over, it is made again"
    if seconds_between(first.created) < _STARTS_WITHIN_S:
        if first.is_ready:
            return "pserver 0 does not answer any more; where it has ended, that is known in a moment"
        return "pserver 0 does not answer yet"
    command = f"kubectl delete pod {first.name} -n {job.namespace}"
    return f"pserver 0 does not answer; if it hangs, `{command}` has it made anew"
