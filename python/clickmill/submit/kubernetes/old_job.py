"""What stands in the way of a job: objects of others under its names, and a job of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.errors import StateError
from clickmill.kube import kinds
from clickmill.kube.kinds import FINISHED_PHASES, kind_of
from clickmill.submit.kubernetes.digest import differences, fixed_part
from clickmill.submit.kubernetes.names import TEMPLATE_ANNOTATION

if TYPE_CHECKING:
    from clickmill.kube.client import Cluster
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.names import RoleName
    from clickmill.submit.kubernetes.plan import JobPlan

_MAX_SHOWN = 5


def live(cluster: Cluster, item: Object) -> Object | None:
    """The object on the cluster that `item` describes; None where there is none."""
    metadata = item["metadata"]
    return cluster.get(kind_of(item), metadata["name"], namespace=metadata["namespace"])


def check_old(plan: JobPlan, old: list[Object], new: list[Object]) -> None:
    """Raises StateError where the job is over, or runs with another template than `new` has."""
    name = plan.names.job
    again = f"`clickmill job delete {name}`, or submit with `--replace`; or give it another `submit.job_name`"
    finished = [phase for phase in map(finished_phase, old) if phase]
    if finished:
        message = f"job `{name}` in namespace `{plan.namespace}` is over: {finished[0]}"
        raise StateError(message, hint=f"to run it again: {again}")
    wanted = {(kind_of(job), job["metadata"]["name"]): job for job in new}
    changes = []
    for item in old:
        job = wanted.get((kind_of(item), item["metadata"]["name"]))
        if job is None:
            changes.append(f"there is a {_resource(item)}, which is no part of this one")
        else:
            changes += _template_changes(item, job)
    if changes:
        shown = "".join(f"\n  {change}" for change in changes[:_MAX_SHOWN])
        more = f"\n  and {len(changes) - _MAX_SHOWN} more" if len(changes) > _MAX_SHOWN else ""
        message = (
            f"job `{name}` runs with another template; only the number of trainers can change:{shown}{more}"
        )
        raise StateError(message, hint=f"end it first: {again}")


def old_workloads(cluster: Cluster, plan: JobPlan) -> list[Object]:
    """What makes pods of a job of this name by now, in whichever way it was submitted."""
    roles: tuple[RoleName, ...] = ("pserver", "trainer", "worker")
    places = [(kinds.VOLCANO_JOB, plan.names.job)]
    places += [(kinds.JOB, plan.names.role(role)) for role in roles]
    found = [cluster.get(kind, name, namespace=plan.namespace) for kind, name in places]
    return [item for item in found if item is not None and _is_ours(item, plan)]


def check_owner(cluster: Cluster, plan: JobPlan, items: list[Object]) -> None:
    """Raises StateError where an object of such a name belongs to somebody else."""
    for item in items:
        found = live(cluster, item)
        if found is not None and not _is_ours(found, plan):
            message = f"{_resource(item)} in namespace `{plan.namespace}` is there, and not of this job"
            raise StateError(message, hint="give the job another `submit.job_name`")


def _is_ours(item: Object, plan: JobPlan) -> bool:
    return bool((item["metadata"].get("labels") or {}).items() >= plan.names.labels.items())


def _resource(item: Object) -> str:
    kind = "Volcano Job" if kind_of(item) == kinds.VOLCANO_JOB else item["kind"]
    return f"{kind} `{item['metadata']['name']}`"


def finished_phase(item: Object) -> str:
    """In which state a Volcano Job or batch Job is over; empty while it is not."""
    status = item.get("status") or {}
    if kind_of(item) == kinds.VOLCANO_JOB:
        phase = (status.get("state") or {}).get("phase", "")
        return phase if phase in FINISHED_PHASES else ""
    for condition in status.get("conditions") or []:
        if condition["type"] in {"Complete", "Failed"} and condition["status"] == "True":
            return str(condition["type"])
    return ""


def _template_changes(old: Object, new: Object) -> list[str]:
    before = (old["metadata"].get("annotations") or {}).get(TEMPLATE_ANNOTATION)
    after = new["metadata"]["annotations"][TEMPLATE_ANNOTATION]
    if before == after:
        return []
    there, wanted = fixed_part(old["spec"]), fixed_part(new["spec"])
    if kind_of(old) != kinds.VOLCANO_JOB:
        there = _stated(there, wanted)
    found = list(differences(there, wanted))
    return found or [f"annotation `{TEMPLATE_ANNOTATION}`: {before} -> {after}"]


def _stated(old: Any, new: Any) -> Any:
    """What of a live spec is stated in the new one: the rest was filled in by the cluster."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: _stated(value, new[key]) for key, value in old.items() if key in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_stated(before, after) for before, after in zip(old, new, strict=True)]
    return old
