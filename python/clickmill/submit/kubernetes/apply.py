"""Bring a manifest to a cluster: everything or nothing, the same thing twice changes nothing.

Before anything is changed the cluster is asked whether it would take all of it, webhooks included. Then
objects are applied in order, what makes the pods last, by one who submits the job at a time: what others have
made of it since the cluster was asked counts as if it had been there before.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clickmill.errors import ConflictError, KubernetesError, NotFoundError, RefusedError, StateError
from clickmill.kube import kinds
from clickmill.kube.kinds import kind_of
from clickmill.submit.kubernetes.binding import await_volumes
from clickmill.submit.kubernetes.check.volcano import QUEUE_REMEDY
from clickmill.submit.kubernetes.manifest import surroundings, workloads
from clickmill.submit.kubernetes.names import ROLE_LABEL
from clickmill.submit.kubernetes.old_job import (
    check_old,
    check_owner,
    check_staying,
    file_changes,
    fresh_words,
    live,
    old_workloads,
)
from clickmill.submit.kubernetes.secret import access_secret
from clickmill.submit.kubernetes.servers import has_servers, settle_servers, with_servers, with_told
from clickmill.submit.kubernetes.trial import try_pods
from clickmill.submit.kubernetes.turn import our_turn, turn_map

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clickmill.kube.client import Cluster
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan
    from clickmill.submit.kubernetes.turn import Turn

Change = Literal["created", "changed", "unchanged"]

GONE_DEADLINE_S = 180.0
_POLL_S = 0.5
_ATTEMPTS = 10
_NO_QUEUE = re.compile(r"unable to find job queue|queue\S* \S+ not found")
"""In the words of Volcano's webhook."""
_OF_THE_SERVER = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink")


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one object."""

    kind: str
    name: str
    change: Change


@dataclass(frozen=True, slots=True)
class Submission:
    """What became of a job."""

    job: str
    namespace: str
    change: Change
    """`created`: it starts now. `changed`: it was there and has been scaled."""
    objects: tuple[Applied, ...]


def submit(
    cluster: Cluster,
    plan: JobPlan,
    *,
    access: Mapping[str, str] | None = None,
    replace: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Submission:
    """Make the job, scale it, or find that it is there already.

    `access` are variables of the Secret `NAME-access`. Raises StateError where a job of the same name has
    finished, or runs with another template, also where somebody else makes it meanwhile; with `replace` the
    one that is there is deleted first. What is on its volume stays.
    """
    items = surroundings(plan) + ([access_secret(plan, access)] if access else [])
    jobs = workloads(plan)
    check_owner(cluster, plan, [*items, *jobs, turn_map(plan)])
    old = old_workloads(cluster, plan)
    check_staying(cluster, plan, [*([] if replace else old), *_there(cluster, items)])
    if not replace:
        check_old(cluster, plan, old, jobs)
    servers = settle_servers(cluster, plan, [] if replace else old)
    for item in items:
        # Whether a Role may be bound is looked up in the Role, which is not there yet.
        if kind_of(item) != kinds.ROLE_BINDING:
            _apply(cluster, with_told(item, servers, plan), is_trial=True)
    try_pods(cluster, plan)
    if old and replace:
        if changes := file_changes(cluster, plan):
            tell(f"{'; '.join(changes)}. {fresh_words(cluster, plan)}")
        tell(f"deleting job `{plan.names.job}`, which is there")
        delete_workloads(cluster, plan, old)
    for job in workloads(with_servers(plan, servers)):
        _apply(cluster, job, is_trial=True)
    with our_turn(cluster, plan, tell) as turn:
        try:
            return _apply_all(cluster, plan, items, turn, tell)
        except StateError as error:  # there was nothing against it a moment ago
            raise _overtaken(cluster, plan, error) from error


def _apply_all(
    cluster: Cluster, plan: JobPlan, items: list[Object], turn: Turn, tell: Callable[[str], None]
) -> Submission:
    """By what is there in our turn. StateError where others have made something else of the job by then."""
    old = old_workloads(cluster, plan)
    check_staying(cluster, plan, [*old, *_there(cluster, items)])
    check_old(cluster, plan, old, workloads(plan))
    servers = settle_servers(cluster, plan, old)
    applied = [_apply(cluster, with_told(item, servers, plan)) for item in items]
    if plan.is_volcano and not old:
        await_volumes(cluster, plan, tell)
    turn.check()
    made = _apply_workloads(cluster, plan)
    if servers is not None and servers.words:
        tell(servers.words)
    return Submission(plan.names.job, plan.namespace, _whole_change(made), (*applied, *made))


def _overtaken(cluster: Cluster, plan: JobPlan, error: StateError) -> StateError:
    name = plan.names.job
    message = f"somebody else has submitted or changed job `{name}` meanwhile: {error}"
    look = f"look at it, `{cluster.command(f'job status {name}', plan.namespace)}`, and submit again"
    return StateError(message, hint=f"{look}; {error.hint}" if error.hint else look)


def _there(cluster: Cluster, items: list[Object]) -> list[Object]:
    found = [live(cluster, item) for item in items]
    return [item for item in found if item is not None]


def _apply_workloads(cluster: Cluster, plan: JobPlan) -> list[Applied]:
    """What makes the pods, with as many servers as there are at that moment: each of them holds buckets."""
    for attempt in range(_ATTEMPTS):
        old = old_workloads(cluster, plan)
        servers = settle_servers(cluster, plan, old)
        versions = {
            (kind_of(item), item["metadata"]["name"]): item["metadata"].get("resourceVersion")
            for item in old
            if has_servers(item)
        }
        try:
            return [
                _apply(cluster, job, version=versions.get((kind_of(job), job["metadata"]["name"])))
                for job in workloads(with_servers(plan, servers))
            ]
        except ConflictError:  # somebody scales it meanwhile, or its status has changed
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def delete_workloads(cluster: Cluster, plan: JobPlan, items: list[Object]) -> None:
    """Delete what makes the pods, and wait until they are gone: new ones have the same names."""
    for item in items:
        cluster.delete(
            kind_of(item), item["metadata"]["name"], propagation="Foreground", namespace=plan.namespace
        )
    deadline = time.monotonic() + GONE_DEADLINE_S
    while True:
        left = [f"{item['kind']} `{item['metadata']['name']}`" for item in items if live(cluster, item)]
        pods = cluster.list(kinds.POD, labels=plan.names.selector, namespace=plan.namespace)
        left += [
            f"pod `{pod['metadata']['name']}`"
            for pod in pods
            if pod["metadata"]["labels"].get(ROLE_LABEL) != "reader"
        ]
        if not left:
            return
        if time.monotonic() > deadline:
            message = f"still there after {GONE_DEADLINE_S:.0f} s: {', '.join(left)}"
            hint = (
                "pods on a node that is lost stay until it is back or has been deleted: "
                "`kubectl get pods -o wide`, `kubectl delete node NAME`"
            )
            raise KubernetesError(message, hint=hint)
        time.sleep(_POLL_S)


def _apply(cluster: Cluster, item: Object, *, is_trial: bool = False, version: str | None = None) -> Applied:
    """`version`: the only one of the object that is changed; ConflictError where it is another by now."""
    kind, name = kind_of(item), item["metadata"]["name"]
    before = live(cluster, item)
    if version is not None:
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": version}}
    try:
        after = cluster.apply(item, is_trial=is_trial)
    except NotFoundError as error:
        raise _missing(item, error) from error
    except (RefusedError, ConflictError) as error:
        if kind == kinds.CLAIM:
            error.hint = (
                "a claim cannot be changed: delete it with what it holds, or name it as `output.claim`"
            )
        elif kind == kinds.VOLCANO_JOB and _NO_QUEUE.search(str(error)):
            error.hint = QUEUE_REMEDY
        raise
    change: Change = "created" if before is None else "unchanged" if _same(before, after) else "changed"
    return Applied(item["kind"], name, change)


def _missing(item: Object, error: NotFoundError) -> KubernetesError:
    namespace = item["metadata"]["namespace"]
    if "namespaces" in str(error):
        message = f"there is no namespace `{namespace}`"
        return NotFoundError(message, hint=f"`kubectl create namespace {namespace}`", status=404)
    if kind_of(item) == kinds.VOLCANO_JOB:
        hint = "install it (docs/guides/kubernetes.md), or use `kubernetes.scheduler: default`"
        return NotFoundError("the cluster has no Volcano", hint=hint, status=404)
    return error


def _same(before: Object, after: Object) -> bool:
    return _own(before) == _own(after)


def _own(item: Object) -> Object:
    metadata = {key: value for key, value in item["metadata"].items() if key not in _OF_THE_SERVER}
    return {**{key: value for key, value in item.items() if key != "status"}, "metadata": metadata}


def _whole_change(applied: list[Applied]) -> Change:
    changes = {each.change for each in applied}
    return "created" if "created" in changes else "changed" if "changed" in changes else "unchanged"
