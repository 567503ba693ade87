"""Everything that is looked at, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.kube import kinds
from clickmill.submit.kubernetes.check.finding import Finding
from clickmill.submit.kubernetes.check.objects import check_image, check_named, check_storage
from clickmill.submit.kubernetes.check.pull import check_pull
from clickmill.submit.kubernetes.check.quota import check_quota
from clickmill.submit.kubernetes.check.rights import check_rights, who
from clickmill.submit.kubernetes.check.room import check_room
from clickmill.submit.kubernetes.check.volcano import check_volcano
from clickmill.submit.kubernetes.names import Names
from clickmill.submit.kubernetes.plan import JobPlan, roles_of
from clickmill.submit.kubernetes.pod import pod_template
from clickmill.submit.kubernetes.resources import amount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config import Config
    from clickmill.config.backend import BackendConfig
    from clickmill.kube.client import Cluster, Object

MIN_MINOR = 29
"""Of Kubernetes 1: from here on Jobs have all that `scheduler: default` needs, without feature gates."""


def plan_to_check(backend: BackendConfig, config: Config | None, namespace: str) -> JobPlan:
    """A plan as far as a cluster has to know it: without files, and whatever is still missing in it."""
    return JobPlan(
        names=Names(backend.submit.name),
        namespace=namespace,
        roles=roles_of(backend, None if config is None else config.runners()[0]),
        config_file="config.yaml",
        package={},
        settings=backend.kubernetes,
    )


def check_cluster(
    cluster: Cluster, plan: JobPlan, *, is_any_job: bool = False, is_pulled: bool = False
) -> Iterator[Finding]:
    """What the job of `plan` needs; `is_any_job`: there is none in particular, so none that lacks an image.

    With `is_pulled` a pod of the image is started, which is all that this ever changes.

    Raises ClusterUnreachableError where there is nobody to ask.
    """
    has_volcano = plan.is_volcano
    namespace = plan.namespace
    yield from _server(cluster, has_volcano=has_volcano)
    found = _namespace(cluster, namespace)
    yield found
    yield from check_rights(cluster, namespace, has_volcano=has_volcano)
    if has_volcano:
        yield from check_volcano(cluster, plan.settings.queue, namespace)
    yield from check_storage(cluster, plan.settings, namespace)
    yield from check_named(cluster, plan.settings, namespace)
    nodes = _nodes(cluster)
    if nodes is None:
        yield Finding("room", "nodes", "unknown", "this user may not look at nodes")
    if plan.settings.image or not is_any_job:
        yield from check_image(plan.settings, nodes)
    if plan.settings.image and is_pulled:
        yield check_pull(cluster, plan)
    yield from check_quota(cluster, plan)
    if nodes:
        yield from check_room(cluster, nodes, list(_gang(plan)))


def _server(cluster: Cluster, *, has_volcano: bool) -> Iterator[Finding]:
    version = cluster.discover("/version")
    user = who(cluster)
    yield Finding("cluster", "server", "ok", f"{cluster.server}, context `{cluster.context}`")
    yield Finding("cluster", "user", "ok", user or "not told")
    minor = int("".join(char for char in version["minor"] if char.isdigit()) or 0)
    words = version["gitVersion"]
    if minor < MIN_MINOR and not has_volcano:
        remedy = "upgrade the cluster, or use `kubernetes.scheduler: volcano`"
        yield Finding("cluster", "version", "lacks", f"{words}; 1.{MIN_MINOR} is needed", remedy)
    else:
        yield Finding("cluster", "version", "ok", words)


def _namespace(cluster: Cluster, name: str) -> Finding:
    what = f"namespace `{name}`"
    try:
        namespace = cluster.get(kinds.NAMESPACE, name)
    except ForbiddenError:
        return Finding("cluster", what, "unknown", "this user may not look at namespaces")
    if namespace is None:
        return Finding("cluster", what, "lacks", "there is none", f"kubectl create namespace {name}")
    phase = namespace["status"]["phase"]
    if phase != "Active":
        return Finding("cluster", what, "lacks", f"is {phase}", "wait until it is gone, or use another one")
    return Finding("cluster", what, "ok", "there")


def _nodes(cluster: Cluster) -> list[Object] | None:
    try:
        return cluster.list(kinds.NODE)
    except ForbiddenError:
        return None


def _gang(plan: JobPlan) -> Iterator[tuple[str, dict[str, float], Object]]:
    for role in plan.roles:
        spec = pod_template(plan, role, scheduler="")["spec"]
        request = {key: amount(value) for key, value in role.request.requests.items()}
        for _ in range(role.min_available):
            yield role.name, {**request, "pods": 1.0}, spec
