"""What keeps pods from starting, room aside: images, volumes, quotas, rights, nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.jobs.events import warnings
from clickmill.jobs.job import role_of
from clickmill.jobs.moments import seconds_between
from clickmill.jobs.reasons import Reason, listed
from clickmill.kube import kinds
from clickmill.submit.kubernetes.binding import is_pending, provisioner
from clickmill.submit.kubernetes.check.pull import IMAGE_REMEDY, IMAGE_STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clickmill.jobs.events import Event
    from clickmill.jobs.job import Job
    from clickmill.jobs.pods import Pod
    from clickmill.jobs.reasons import Kind
    from clickmill.kube.client import Cluster, Object

_CONFIG_STATES = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_MOUNT_REASONS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_FIRST_TRIES_S = 10.0
"""A node may be told of the volumes of a new pod before it may read them; it tries again within seconds."""
_FIRST_VOLUME_S = 30.0
"""Some stores take their time to make a volume."""
_IMAGE_REMEDY = f"{IMAGE_REMEDY}; mend it and submit with `--replace`"
_REFUSALS: tuple[tuple[str, Kind, str], ...] = (
    ("exceeded quota", "quota", "ask for less, or have the quota raised: `kubectl describe resourcequota`"),
    (
        "service account",
        "access",
        "submit again: it makes the ServiceAccount with its Role; or ask for the right to make one",
    ),
    ("serviceaccount", "access", "submit again: it makes the ServiceAccount with its Role"),
    (
        "violates PodSecurity",
        "access",
        "this namespace allows no such pods: use a claim in place of `host_path`, or another namespace",
    ),
    ("is forbidden", "access", "`clickmill cluster check` lists the rights that are missing"),
)


def obstacles(cluster: Cluster, job: Job, pods: Sequence[Pod]) -> list[Reason]:
    """Everything that is known to be in the way of the pods of a job."""
    names = {job.name, *(workload["metadata"]["name"] for workload in job.workloads)}
    claims = job.claims
    events = warnings(cluster, names | set(claims), prefix=f"{job.name}-", since=job.created)
    found = [
        *_images(pods, events),
        *_volumes(cluster, claims, events),
        *_mounts(pods, events),
        *_configs(pods),
        *(list(_refused(job, pods, events)) or _backing_off(job, pods)),
        *lost_nodes(cluster, pods),
    ]
    return list(dict.fromkeys(found))


def _images(pods: Sequence[Pod], events: Sequence[Event]) -> Iterator[Reason]:
    by_image: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.state in IMAGE_STATES:
            by_image.setdefault(_image(pod), []).append(pod)
    for image, those in by_image.items():
        detail = next((pod.detail for pod in those if _says_why(pod.detail)), None) or next(
            (each.message for each in events if each.reason == "Failed" and image in each.message), ""
        )
        whom = listed([pod.title for pod in those])
        message = f"{whom} cannot start: image `{image}` cannot be had: {detail or those[0].state}"
        yield Reason("image", message, _IMAGE_REMEDY)


def _image(pod: Pod) -> str:
    return str(pod.item["spec"]["containers"][0].get("image", ""))


def _says_why(detail: str) -> bool:
    """`Back-off pulling image ...` alone says only that it has failed before."""
    return bool(detail) and not re.fullmatch(r'Back-off pulling image "[^"]*"', detail)


def _volumes(cluster: Cluster, claims: Sequence[str], events: Sequence[Event]) -> Iterator[Reason]:
    for name in claims:
        try:
            claim = cluster.get(kinds.CLAIM, name)
        except ForbiddenError:
            return
        if claim is None:
            yield Reason(
                "volume", f"there is no claim `{name}`", "make it, or name another one and submit again"
            )
        elif is_pending(claim) and not _waits_for_pod(claim, events):
            yield _pending_claim(name, claim, events)
        elif (claim.get("status") or {}).get("phase") == "Lost":
            yield Reason("volume", f"claim `{name}` has lost its volume", f"`kubectl describe pvc {name}`")


def _waits_for_pod(claim: Object, events: Sequence[Event]) -> bool:
    """Its class makes volumes where the first pod comes to lie, or is about to make one: no obstacle."""
    metadata = claim["metadata"]
    is_told_of = any(event.about == metadata["name"] for event in events)
    if is_told_of or "volume.kubernetes.io/selected-node" in (metadata.get("annotations") or {}):
        return False
    return not provisioner(claim) or seconds_between(metadata["creationTimestamp"]) < _FIRST_VOLUME_S


def _pending_claim(name: str, claim: Object, events: Sequence[Event]) -> Reason:
    event = next((each for each in events if each.about == name), None)
    storage_class, maker = claim["spec"].get("storageClassName"), provisioner(claim)
    if event is None and maker:
        words = f"claim `{name}` is pending: `{maker}` has made no volume for it yet"
        return Reason("volume", words, f"does that provisioner run? `kubectl describe pvc {name}` has more")
    why = event.message if event else "no volume has been made for it"
    remedy = (
        f"does storage class `{storage_class}` exist and can it make volumes? `kubectl get storageclass`"
        if storage_class
        else "the cluster has no default storage class: name one as `kubernetes.output.storage_class`"
    )
    return Reason("volume", f"claim `{name}` is pending: {why}", remedy)


def _mounts(pods: Sequence[Pod], events: Sequence[Event]) -> Iterator[Reason]:
    starting = {pod.name: pod for pod in pods if pod.state == "Starting"}
    told: dict[str, list[str]] = {}
    for event in events:
        pod = starting.get(event.about)
        if pod is None or seconds_between(_came_to_node(pod)) < _FIRST_TRIES_S:
            continue
        if event.reason in _MOUNT_REASONS:
            titles = told.setdefault(event.message, [])
            if pod.title not in titles:
                titles.append(pod.title)
    for message, titles in told.items():
        remedy = "is the volume there, and can it be used from that node? `kubectl describe pod` has more"
        yield Reason("volume", f"{listed(titles)} cannot start: {message}", remedy)


def _came_to_node(pod: Pod) -> str:
    """When; a pod may have waited for its node for long."""
    return str((pod.item.get("status") or {}).get("startTime") or pod.created)


def _configs(pods: Sequence[Pod]) -> Iterator[Reason]:
    by_words: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        if pod.state in _CONFIG_STATES:
            by_words.setdefault((pod.state, pod.detail), []).append(pod.title)
    for (state, detail), titles in by_words.items():
        remedy = "submit again: it makes what is missing" if "not found" in detail else None
        yield Reason("pod", f"{listed(titles)} cannot start: {detail or state}", remedy)


def _refused(job: Job, pods: Sequence[Pod], events: Sequence[Event]) -> Iterator[Reason]:
    """Pods that the API server does not let anybody make."""
    if len(pods) >= job.num_pods:
        return
    for event in events:
        if event.reason in _MOUNT_REASONS:
            continue  # of a pod that was made: a node may be told of it before it may read its volumes
        for sign, kind, remedy in _REFUSALS:
            if sign in event.message and event.kind in {"Job", "PodGroup", "Pod"}:
                yield Reason(kind, f"pods cannot be made: {_innermost(event.message)}", remedy)
                return


def _backing_off(job: Job, pods: Sequence[Pod]) -> Iterator[Reason]:
    """Pods that plain Kubernetes makes again when it has waited, longer after each failure."""
    if job.is_volcano:
        return
    for workload in job.workloads:
        role = role_of(workload["spec"]["template"])
        num_failed = (workload.get("status") or {}).get("failed", 0)
        there = {pod.index for pod in pods if pod.role == role and not _has_failed(pod)}
        missing = [
            f"{role} {index}" for index in range(workload["spec"]["completions"]) if index not in there
        ]
        if num_failed and missing:
            are, have = "is" if len(missing) == 1 else "are", "has" if num_failed == 1 else "have"
            words = (
                f"{listed(missing)} {are} not there: the Job controller waits before it makes pods again, "
                f"10 s after a failure and twice as long after each further one; {num_failed} {have} failed"
            )
            yield Reason("pod", words)


def _has_failed(pod: Pod) -> bool:
    return (pod.item.get("status") or {}).get("phase") == "Failed"


def _innermost(message: str) -> str:
    """What the API server said, without what Volcano wraps around it for each of its pods."""
    found = re.search(r'Message:"((?:[^"\\]|\\.)*)"', message)
    text = found[1].replace('\\"', '"') if found else message.removeprefix("Error creating: ")
    return re.sub(r'^pods "[^"]*" is forbidden: ', "", text)


def lost_nodes(cluster: Cluster, pods: Sequence[Pod]) -> list[Reason]:
    """Nodes with pods of the job that are gone, or whose kubelet is."""
    return list(_lost(cluster, pods))


def _lost(cluster: Cluster, pods: Sequence[Pod]) -> Iterator[Reason]:
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node and not pod.is_ready and pod.ending is None:
            by_node.setdefault(pod.node, []).append(pod)
    for node, those in by_node.items():
        if not _is_silent(cluster, node) and not any(map(_is_overdue, those)):
            continue
        remedy = (
            f"bring the node back; if it is gone for good, `kubectl delete node {node}` lets pods of these "
            "names be made elsewhere"
        )
        titles = listed([pod.title for pod in those])
        words = f"node `{node}` does not answer; on it {'is' if len(those) == 1 else 'are'} {titles}"
        yield Reason("node", words, remedy)


def _is_silent(cluster: Cluster, name: str) -> bool:
    """Whether the cluster has given up hearing of it; False where this user may not look at nodes."""
    try:
        node = cluster.get(kinds.NODE, name)
    except ForbiddenError:
        return False
    conditions = ((node or {}).get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "Unknown" for each in conditions)


def _is_overdue(pod: Pod) -> bool:
    """Whether it should have been removed by now."""
    # The API server writes down when the pod should be gone, its grace period included.
    return pod.is_leaving and seconds_between(pod.item["metadata"]["deletionTimestamp"]) > 5


def pod_obstacle(cluster: Cluster, pod: Pod) -> Reason | None:
    """What keeps one pod from starting, where something does."""
    events = warnings(cluster, {pod.name}, prefix=pod.name, since=pod.created)
    found = [*_images([pod], events), *_configs([pod]), *_mounts([pod], events)]
    if not found and pod.is_unscheduled and pod.detail:
        found = [Reason("resources", f"{pod.name} is not scheduled: {pod.detail}")]
    return found[0] if found else None
