"""A job of a cluster: what was asked for, and what became of it so far."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clickmill.config.backend.models import kubernetes_name
from clickmill.errors import NotFoundError, StateError
from clickmill.kube import kinds
from clickmill.launch.pod.tries import MAX_RESTARTS
from clickmill.submit.kubernetes.names import INSTANCE_LABEL, MANAGER_LABEL, NAME_LABEL, ROLE_LABEL, Names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickmill.kube.client import Cluster, Object
    from clickmill.kube.kinds import Kind

Phase = Literal[
    "Pending",
    "Running",
    "Restarting",
    "Stopping",
    "Completing",
    "Completed",
    "Failed",
    "Stopped",
    "Deleted",
    "Unknown",
]

OURS = {NAME_LABEL: "clickmill", MANAGER_LABEL: "clickmill"}
"""Labels without which an object is not touched."""
_LEFT_BEHIND: tuple[tuple[Kind, str, Phase], ...] = (
    (kinds.CONFIG_MAP, "-package", "Stopped"),
    (kinds.CLAIM, "-output", "Deleted"),
)
"""By what it is known that there was a job, and what became of it: one that was stopped has its files still,
and of one that was deleted the output may have been kept."""
_ROLES = ("pserver", "trainer", "worker")
_VOLCANO_PHASES: dict[str, Phase] = {
    "": "Pending",
    "Pending": "Pending",
    "Running": "Running",
    "Restarting": "Restarting",
    "Completing": "Completing",
    "Completed": "Completed",
    "Terminating": "Failed",
    "Terminated": "Failed",
    "Failed": "Failed",
    "Aborting": "Stopping",
    "Aborted": "Stopped",
}


@dataclass(frozen=True, slots=True)
class RoleSize:
    """How many pods of a role there shall be."""

    replicas: int
    min_available: int
    """So many start together, or none."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as the cluster has it at one moment."""

    name: str
    namespace: str
    is_volcano: bool
    workloads: tuple[Object, ...]
    """What makes its pods: one Volcano Job, or a batch Job for each role. Nothing where it was stopped."""
    roles: Mapping[str, RoleSize]
    phase: Phase
    message: str
    """What the cluster says about that, if it says anything."""
    created: str
    """Moment, as the API server writes it."""
    ended: str | None
    num_retries: int
    """How often Volcano has started it, or pods of it, again; of several Jobs, the one with most failures."""
    max_retries: int | None

    @property
    def names(self) -> Names:
        """Of its objects."""
        return Names(self.name)

    @property
    def is_over(self) -> bool:
        """It does not change by itself any more."""
        return self.phase in {"Completed", "Failed", "Stopped", "Deleted"}

    @property
    def is_leaving(self) -> bool:
        """It is being stopped or deleted: its object is there until its pods have ended."""
        return any(map(_is_leaving, self.workloads))

    @property
    def is_collective(self) -> bool:
        """It has no parameter servers."""
        return "worker" in self.roles

    @property
    def num_pods(self) -> int:
        """That there shall be."""
        return sum(size.replicas for size in self.roles.values())

    @property
    def queue(self) -> str | None:
        """Of Volcano."""
        return self.workloads[0]["spec"].get("queue") if self.is_volcano and self.workloads else None

    def template(self, role: str) -> Object | None:
        """Of the pods of a role; None where the job is stopped."""
        for workload in self.workloads:
            for task in workload["spec"].get("tasks") or [workload["spec"]]:
                if role_of(task["template"]) == role:
                    template: Object = task["template"]
                    return template
        return None

    @property
    def claims(self) -> list[str]:
        """Names of the claims that its pods use."""
        templates = [self.template(role) or {"spec": {}} for role in self.roles]
        volumes = [volume for each in templates for volume in each["spec"].get("volumes") or []]
        claims = [volume["persistentVolumeClaim"] for volume in volumes if "persistentVolumeClaim" in volume]
        return list(dict.fromkeys(claim["claimName"] for claim in claims))


def find_job(cluster: Cluster, name: str) -> Job:
    """The job. NotFoundError where there is none of ours by that name."""
    job = look_up(cluster, name)
    if job is not None:
        return job
    raise no_such_job(cluster, name)


def no_such_job(cluster: Cluster, name: str) -> NotFoundError:
    """With the name that was meant, where it can be told: as backend.yaml has it, or with a slip."""
    known = [each.name for each in list_jobs(cluster)]
    near = difflib.get_close_matches(name, known, n=1)
    if (ours := kubernetes_name(name)) in known:
        hint = f"on Kubernetes the job of that name is `{ours}`"
    elif near:
        hint = f"did you mean `{near[0]}`?"
    else:
        hint = "`clickmill job ls --all-namespaces` lists those there are"
    message = f"there is no job `{name}` in namespace `{cluster.namespace}`"
    return NotFoundError(message, hint=hint, status=404)


def look_up(cluster: Cluster, name: str) -> Job | None:
    """The job, or None. StateError where there is one that we have not made."""
    volcano = cluster.get(kinds.VOLCANO_JOB, name)
    if volcano is not None:
        if not is_ours(volcano):
            raise StateError(
                f"Volcano Job `{name}` in namespace `{cluster.namespace}` was not made by `clickmill submit`",
                hint=f"`kubectl get vcjob {name} -n {cluster.namespace}` and `kubectl logs` show it",
            )
        return _of_volcano(volcano)
    plain = cluster.list(kinds.JOB, labels={**OURS, INSTANCE_LABEL: name})
    if plain:
        return _of_jobs(name, plain)
    for kind, left, phase in _LEFT_BEHIND:
        item = cluster.get(kind, name + left)
        if item is not None and is_ours(item):
            return _left(name, item, phase)
    return None


def list_jobs(cluster: Cluster, *, namespace: str | None = None) -> list[Job]:
    """All jobs of ours, by namespace and name; `*` as the namespace means everywhere."""
    found: dict[tuple[str, str], Job] = {}
    try:
        volcano = cluster.list(kinds.VOLCANO_JOB, labels=OURS, namespace=namespace)
    except NotFoundError:  # no Volcano here
        volcano = []
    for item in volcano:
        job = _of_volcano(item)
        found[job.namespace, job.name] = job
    plain: dict[tuple[str, str], list[Object]] = {}
    for item in cluster.list(kinds.JOB, labels=OURS, namespace=namespace):
        plain.setdefault(_place(item), []).append(item)
    for place, items in plain.items():
        found.setdefault(place, _of_jobs(place[1], items))
    for kind, left, phase in _LEFT_BEHIND:
        for item in cluster.list(kind, labels=OURS, namespace=namespace):
            place = _place(item)
            if item["metadata"]["name"] == place[1] + left:
                found.setdefault(place, _left(place[1], item, phase))
    return [found[place] for place in sorted(found)]


def is_ours(item: Object) -> bool:
    """Whether `clickmill submit` has made the object."""
    labels = item["metadata"].get("labels") or {}
    return all(labels.get(label) == value for label, value in OURS.items())


def role_of(item: Object) -> str:
    """Role of a pod, or of a template of pods."""
    return str((item["metadata"].get("labels") or {}).get(ROLE_LABEL, ""))


def _place(item: Object) -> tuple[str, str]:
    metadata = item["metadata"]
    return metadata["namespace"], metadata["labels"].get(INSTANCE_LABEL, metadata["name"])


def _of_volcano(item: Object) -> Job:
    spec, status = item["spec"], item.get("status") or {}
    state = status.get("state") or {}
    phase = _VOLCANO_PHASES.get(state.get("phase", ""), "Unknown")
    if phase == "Pending" and status.get("running") and status.get("retryCount"):
        phase = "Restarting"  # a pod is made anew, while the others run on
    is_over = phase in {"Completed", "Failed", "Stopped"}
    if _is_leaving(item) and not is_over:
        phase = "Stopping"
    return Job(
        name=item["metadata"]["name"],
        namespace=item["metadata"]["namespace"],
        is_volcano=True,
        workloads=(item,),
        roles={
            role_of(task["template"]) or task["name"]: RoleSize(
                task["replicas"], task.get("minAvailable", task["replicas"])
            )
            for task in spec["tasks"]
        },
        phase=phase,
        message=" ".join(part for part in (state.get("reason"), state.get("message")) if part),
        created=item["metadata"]["creationTimestamp"],
        ended=state.get("lastTransitionTime") if is_over else None,
        num_retries=status.get("retryCount", 0),
        max_retries=_max_restarts(spec["tasks"][0]["template"]) or spec.get("maxRetry"),
    )


def _is_leaving(item: Object) -> bool:
    return "deletionTimestamp" in item["metadata"]


def _max_restarts(template: Object) -> int | None:
    """As launchers are told, who give up before those above them do."""
    for variable in template["spec"]["containers"][0].get("env") or []:
        if variable["name"] == MAX_RESTARTS[0] and variable.get("value", "").isdigit():
            return int(variable["value"])
    return None


def _of_jobs(name: str, items: Sequence[Object]) -> Job:
    items = sorted(items, key=lambda item: _ROLES.index(role_of(item["spec"]["template"]) or _ROLES[-1]))
    conditions = [_ended(item) for item in items]
    failed = next((each for each in conditions if each and each["type"] == "Failed"), None)
    ended = [each for each in conditions if each]
    return Job(
        name=name,
        namespace=items[0]["metadata"]["namespace"],
        is_volcano=False,
        workloads=tuple(items),
        roles={role_of(item["spec"]["template"]): RoleSize(item["spec"]["completions"], 1) for item in items},
        phase=_phase(items, failed=failed is not None, num_ended=len(ended)),
        message="" if failed is None else f"{failed.get('reason', '')} {failed.get('message', '')}".strip(),
        created=min(item["metadata"]["creationTimestamp"] for item in items),
        ended=max(each["lastTransitionTime"] for each in ended) if len(ended) == len(items) else None,
        # Each Job has its own limit.
        num_retries=max((item.get("status") or {}).get("failed", 0) for item in items),
        max_retries=_max_restarts(items[0]["spec"]["template"]) or items[0]["spec"].get("backoffLimit"),
    )


def _phase(items: Sequence[Object], *, failed: bool, num_ended: int) -> Phase:
    if failed:
        return "Failed"
    if num_ended == len(items):
        return "Completed"
    if any(map(_is_leaving, items)):
        return "Stopping"
    if num_ended:
        return "Completing"
    is_running = any((item.get("status") or {}).get("ready") for item in items)
    return "Running" if is_running else "Pending"


def _ended(item: Object) -> Object | None:
    """The condition by which a batch Job is over."""
    for condition in (item.get("status") or {}).get("conditions") or []:
        if condition["type"] in {"Complete", "Failed"} and condition["status"] == "True":
            found: Object = condition
            return found
    return None


def _left(name: str, item: Object, phase: Phase) -> Job:
    metadata = item["metadata"]
    return Job(
        name=name,
        namespace=metadata["namespace"],
        is_volcano=False,
        workloads=(),
        roles={},
        phase=phase,
        message="",
        created=metadata["creationTimestamp"],
        ended=None,
        num_retries=0,
        max_retries=None,
    )
