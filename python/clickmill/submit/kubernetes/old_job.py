"""What stands in the way of a job: objects of others under its names, and a job of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.errors import StateError
from clickmill.kube import kinds
from clickmill.kube.kinds import FINISHED_PHASES, kind_of
from clickmill.submit.kubernetes.config_map import package_map
from clickmill.submit.kubernetes.digest import differences, fixed_part
from clickmill.submit.kubernetes.names import PACKAGE_ANNOTATION, TEMPLATE_ANNOTATION

if TYPE_CHECKING:
    from clickmill.kube.client import Cluster
    from clickmill.kube.kinds import Kind
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.names import RoleName
    from clickmill.submit.kubernetes.plan import JobPlan

_MAX_SHOWN = 5


def live(cluster: Cluster, item: Object) -> Object | None:
    """The object on the cluster that `item` describes; None where there is none."""
    metadata = item["metadata"]
    return cluster.get(kind_of(item), metadata["name"], namespace=metadata["namespace"])


def check_old(cluster: Cluster, plan: JobPlan, old: list[Object], new: list[Object]) -> None:
    """Raises StateError where the job is over, or has another template than `new`."""
    name = plan.names.job
    delete = cluster.command(f"job delete {name}", plan.namespace)
    again = f"`{delete}`, or submit with `--replace`; or give it another `submit.job_name`"
    finished = [phase for phase in map(finished_phase, old) if phase]
    if finished:
        message = f"job `{name}` in namespace `{plan.namespace}` is over: {finished[0]}"
        raise StateError(message, hint=f"to run it again: {again}. {over_words(cluster, plan)}")
    wanted = {(kind_of(job), job["metadata"]["name"]): job for job in new}
    changes = []
    for item in old:
        job = wanted.get((kind_of(item), item["metadata"]["name"]))
        if job is None:
            changes.append(f"there is a {_resource(item)}, which is no part of this one")
        else:
            changes += _template_changes(item, job)
    files = file_changes(cluster, plan) if old else []
    if _is_other_template(old, wanted) and not changes and not files:
        changes.append(
            f"annotation `{TEMPLATE_ANNOTATION}` is another one: somebody has changed objects of it"
        )
    changes += files
    if changes:
        shown = "".join(f"\n  {change}" for change in changes[:_MAX_SHOWN])
        more = f"\n  and {len(changes) - _MAX_SHOWN} more" if len(changes) > _MAX_SHOWN else ""
        message = f"job `{name}` is there, and only its number of trainers can change so:{shown}{more}"
        raise StateError(message, hint=f"end it first: {again}. {fresh_words(cluster, plan)}")


def check_staying(cluster: Cluster, plan: JobPlan, items: list[Object]) -> None:
    """Raises StateError where something of the job is being deleted: unchanged now, it would be gone soon."""
    going = [item for item in items if item["metadata"].get("deletionTimestamp")]
    if going:
        names = ", ".join(_resource(item) for item in going)
        message = f"job `{plan.names.job}` in namespace `{plan.namespace}` is being deleted: {names}"
        list_jobs = cluster.command("job ls", plan.namespace)
        raise StateError(message, hint=f"submit it again when it is gone; `{list_jobs}` tells")


def fresh_words(cluster: Cluster, plan: JobPlan) -> str:
    """What to do where the run on the volume cannot go on."""
    delete = cluster.command(f"job delete {plan.names.job} --with-output", plan.namespace)
    return (
        "The run on its volume goes on then, which it cannot with another model, other data or other passes: "
        f"for those `{delete}` first, or another `submit.job_name`"
    )


def over_words(cluster: Cluster, plan: JobPlan) -> str:
    """What to do where the run on the volume is done, and there is nothing left to train."""
    delete = cluster.command(f"job delete {plan.names.job} --with-output", plan.namespace)
    return (
        "A run that is done stays on its volume, and is only trained on with more `epochs`: "
        f"to begin anew `{delete}` first"
    )


def file_changes(cluster: Cluster, plan: JobPlan) -> list[str]:
    """In which files the package of the job on the cluster differs; nothing where there is none."""
    item = cluster.get(kinds.CONFIG_MAP, plan.names.package, namespace=plan.namespace)
    if item is None:
        return []
    before, after = _files(item), _files(package_map(plan))
    words = {(True, True): "is another one", (False, True): "is new", (True, False): "is gone"}
    return [
        f"file `{name}` {words[name in before, name in after]}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _files(item: Object) -> dict[str, tuple[str, str]]:
    return {
        name: (key, content)
        for key in ("data", "binaryData")
        for name, content in (item.get(key) or {}).items()
    }


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
    if _digest(old) == _digest(new):
        return []
    there, wanted = _without_package(fixed_part(old["spec"])), _without_package(fixed_part(new["spec"]))
    if kind_of(old) != kinds.VOLCANO_JOB:
        there = _stated(there, wanted)
    return list(differences(there, wanted))


def _is_other_template(old: list[Object], wanted: dict[tuple[Kind, str], Object]) -> bool:
    jobs = [(item, wanted.get((kind_of(item), item["metadata"]["name"]))) for item in old]
    return any(job is not None and _digest(item) != _digest(job) for item, job in jobs)


def _digest(item: Object) -> str | None:
    found: str | None = (item["metadata"].get("annotations") or {}).get(TEMPLATE_ANNOTATION)
    return found


def _without_package(spec: Object) -> Object:
    """Without the digest of the files: those that differ are named themselves, once."""
    for part in spec.get("tasks") or [spec]:
        (part["template"]["metadata"].get("annotations") or {}).pop(PACKAGE_ANNOTATION, None)
    return spec


def _stated(old: Any, new: Any) -> Any:
    """What of a live spec is stated in the new one: the rest was filled in by the cluster."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: _stated(value, new[key]) for key, value in old.items() if key in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_stated(before, after) for before, after in zip(old, new, strict=True)]
    return old
