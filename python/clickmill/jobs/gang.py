"""Why Volcano does not start the pods of a job: its gang, its queue, the room on the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.jobs.quantities import amount_words, lacking, parse_amounts, total, words
from clickmill.jobs.reasons import Reason
from clickmill.jobs.room import asked_by, fitting, node_rooms
from clickmill.kube import kinds
from clickmill.submit.kubernetes.binding import is_pending, provisioner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.jobs.job import Job
    from clickmill.jobs.pods import Pod
    from clickmill.jobs.quantities import Amounts
    from clickmill.jobs.room import NodeRoom
    from clickmill.kube.client import Cluster, Object

_MAX_NODES = 6
"""Of which it is told what they lack."""
_UNSCHEDULABLE = "Unschedulable"


def gang_reasons(cluster: Cluster, job: Job, pods: Sequence[Pod]) -> list[Reason]:
    """Why pods of the job are not there or have no node, as far as room and queues explain it."""
    missing = _missing(job, pods)
    if not missing:
        return []
    queue = _queue_reason(cluster, job, pods)
    room = _room_reason(cluster, job, missing)
    reasons = [reason for reason in (queue, room) if reason is not None]
    return reasons or _told(cluster, job, pods)


def _missing(job: Job, pods: Sequence[Pod]) -> list[Object]:
    """Templates of the pods that have no node: of the gang, as long as that is not complete."""
    found: list[Object] = []
    rest: list[Object] = []
    for role, size in job.roles.items():
        template = job.template(role)
        if template is None:
            continue
        placed = sum(pod.role == role and pod.node is not None for pod in pods)
        found += [template] * max(0, size.min_available - placed)
        rest += [template] * max(0, size.replicas - placed)
    # Plain Kubernetes has no gangs: every pod looks for room by itself.
    return found if found and job.is_volcano else rest


def is_gang_placed(job: Job, pods: Sequence[Pod]) -> bool:
    """Whether all that must start together has nodes; what is missing then is elastic."""
    return all(
        sum(pod.role == role and pod.node is not None for pod in pods) >= size.min_available
        for role, size in job.roles.items()
    )


def pod_group(cluster: Cluster, job: Job) -> Object | None:
    """What Volcano schedules as one."""
    if not job.is_volcano or not job.workloads:
        return None
    metadata = job.workloads[0]["metadata"]
    try:
        return cluster.get(kinds.POD_GROUP, f"{job.name}-{metadata['uid']}")
    except ForbiddenError:
        return None


def _queue_reason(cluster: Cluster, job: Job, pods: Sequence[Pod]) -> Reason | None:
    if job.queue is None:
        return None
    try:
        queue = cluster.get(kinds.QUEUE, job.queue)
    except ForbiddenError:
        return None
    if queue is None:
        remedy = "make the queue, or name another one as `kubernetes.queue` and submit again"
        return Reason("queue", f"there is no queue `{job.queue}`", remedy)
    state = (queue.get("status") or {}).get("state", "Open")
    if state != "Open":
        remedy = f"open it (`vcctl queue operate -n {job.queue} -a open`), or submit to another queue"
        return Reason("queue", f"queue `{job.queue}` is {state.lower()}", remedy)
    return _full_queue(job, queue, _missing(job, pods))


def _full_queue(job: Job, queue: Object, missing: Sequence[Object]) -> Reason | None:
    """Where what the queue may give out is less than what is asked for."""
    capability = parse_amounts(queue["spec"].get("capability"))
    allocated = parse_amounts((queue.get("status") or {}).get("allocated"))
    wanted = total(asked_by(template) for template in missing)
    wanted = {resource: amount for resource, amount in wanted.items() if resource in capability}
    short = lacking(total([allocated, wanted]), capability)
    short = {resource: short[resource] for resource in short if resource in capability}
    if not short:
        return None
    parts = [
        f"{amount_words(resource, allocated.get(resource, capability[resource] * 0))} of "
        f"{amount_words(resource, capability[resource])} are taken, and it asks for "
        f"{amount_words(resource, wanted[resource])}"
        for resource in sorted(short)
    ]
    is_hopeless = bool(lacking(wanted, capability))
    remedy = (
        f"ask for less, or have the capability of queue `{job.queue}` raised: this can never fit into it"
        if is_hopeless
        else "it starts when jobs before it in the queue end"
    )
    return Reason("queue", f"queue `{job.queue}` is full: {'; '.join(parts)}", remedy)


def _room_reason(cluster: Cluster, job: Job, missing: Sequence[Object]) -> Reason | None:
    template = max(missing, key=lambda each: asked_by(each).get("cpu", 0))
    rooms = node_rooms(cluster, template)
    if rooms is None:
        return None
    wanted = [asked_by(each) for each in missing]
    num_fitting = fitting(wanted, rooms)
    if num_fitting == len(wanted):
        return None
    asked = {key: value for key, value in asked_by(template).items() if key != "pods"}
    per_node = "; ".join(_node_words(room, template, asked) for room in _nearest(rooms, asked))
    more = f"; and {len(rooms) - _MAX_NODES} more nodes" if len(rooms) > _MAX_NODES else ""
    whom = "of the gang fit" if job.is_volcano else "fit"
    role = (template["metadata"].get("labels") or {}).get("clickmill.io/role", "pod")
    message = (
        f"{num_fitting} of {len(wanted)} pods {whom}: a {role} asks for {words(asked)}; {per_node}{more}"
    )
    return Reason("resources", message, _room_remedy(rooms, asked))


def _room_remedy(rooms: Sequence[NodeRoom], asked: Amounts) -> str:
    if all(room.refusal for room in rooms):
        return (
            "open or label a node for it, or change `kubernetes.node_selector` or `tolerations`, and submit "
            "with `--replace`"
        )
    if all(room.refusal or lacking(asked, room.has) for room in rooms):
        return "add a node that is large enough, or ask for less in `kubernetes.resources` and submit again"
    return "add a node, end other jobs, or ask for less; it starts by itself when there is room"


def _nearest(rooms: Sequence[NodeRoom], asked: Amounts) -> list[NodeRoom]:
    """Those that lack least, first."""
    return sorted(rooms, key=lambda room: (bool(room.refusal), sum(lacking(asked, room.free).values())))[
        :_MAX_NODES
    ]


def _node_words(room: NodeRoom, template: Object, asked: Amounts) -> str:
    if room.refusal:
        return f"node `{room.name}` {room.refusal}"
    short = lacking(asked, room.free)
    if not short and lacking(asked_by(template), room.free):
        return f"node `{room.name}` takes no more pods"
    return f"node `{room.name}` lacks {words(short)}" if short else f"node `{room.name}` has room for one"


def _look_again(cluster: Cluster, job: Job, pods: Sequence[Pod]) -> str | None:
    """What helps where Volcano has not noticed that a claim has its volume; `binding` has the reason."""
    if job.num_retries or any(pod.node for pod in pods):
        return None  # it has placed pods with these claims, and has only not come to the others yet
    for name in job.claims:
        try:
            claim = cluster.get(kinds.CLAIM, name)
        except ForbiddenError:
            return None
        if claim is not None and provisioner(claim) and not is_pending(claim):
            labels = ",".join(f"{label}={value}" for label, value in job.names.selector.items())
            command = f"kubectl annotate pods -n {job.namespace} -l {labels} again=yes --overwrite"
            return (
                f"if claim `{name}` had no volume when the pods were made, Volcano looks at them again when "
                f"they change: `{command}`"
            )
    return None


def _told(cluster: Cluster, job: Job, pods: Sequence[Pod]) -> list[Reason]:
    """What the scheduler says by itself, where room and queue do not explain it."""
    group = pod_group(cluster, job)
    for condition in reversed(((group or {}).get("status") or {}).get("conditions") or []):
        if condition["type"] == _UNSCHEDULABLE and condition["status"] == "True":
            words = f"the gang is not scheduled: {condition.get('message', '')}"
            return [Reason("gang", words, _look_again(cluster, job, pods))]
    for pod in pods:
        if pod.is_unscheduled and pod.detail:
            return [Reason("resources", f"{pod.title} is not scheduled: {pod.detail}")]
    if job.is_volcano and not pods:
        phase = ((group or {}).get("status") or {}).get("phase") or "not made yet"
        remedy = None if group else "is Volcano running? `clickmill cluster check`"
        return [Reason("gang", f"Volcano has made no pods yet; the pod group is {phase.lower()}", remedy)]
    return []
