"""Whether Volcano is there and takes jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError, KubernetesError, NotFoundError, RefusedError
from clickmill.kube import kinds
from clickmill.submit.kubernetes.check.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.kube.client import Cluster, Object
    from clickmill.kube.kinds import Kind

_TOPIC = "Volcano"
INSTALL = (
    "helm install volcano volcano --repo https://volcano-sh.github.io/helm-charts -n volcano-system "
    "--create-namespace; or use `kubernetes.scheduler: default`"
)
QUEUE_REMEDY = "kubectl apply -f deploy/k8s/queues.yaml, or name another one as `kubernetes.queue`"
_KINDS = (kinds.VOLCANO_JOB, kinds.POD_GROUP, kinds.QUEUE, kinds.COMMAND)
_NAMESPACE = "volcano-system"
_PARTS = {
    "volcano-scheduler": "starts no pod without it",
    "volcano-controllers": "makes no pod without it",
    "volcano-admission": "takes no job without it",
}


def check_volcano(cluster: Cluster, queue: str, namespace: str) -> Iterator[Finding]:
    """Kinds, webhook, its processes as far as they can be seen, and the queue."""
    absent = [kind.resource for kind in _KINDS if not has_kind(cluster, kind)]
    if absent:
        yield Finding(_TOPIC, "kinds", "lacks", f"not installed: {', '.join(absent)}", INSTALL)
        return
    yield Finding(_TOPIC, "kinds", "ok", ", ".join(kind.resource for kind in _KINDS))
    yield from _processes(cluster)
    found = _queue(cluster, queue)
    yield found
    if found.state != "lacks":
        yield _webhook(cluster, queue, namespace)


def has_kind(cluster: Cluster, kind: Kind) -> bool:
    """Whether the API server serves the kind; everybody may ask that."""
    try:
        served = cluster.discover(f"/apis/{kind.group}/{kind.version}")
    except NotFoundError:
        return False
    return any(resource["name"] == kind.plural for resource in served["resources"])


def _processes(cluster: Cluster) -> Iterator[Finding]:
    try:
        found = {
            item["metadata"]["name"]: (item.get("status") or {}).get("availableReplicas", 0)
            for item in cluster.list(kinds.DEPLOYMENT, namespace=_NAMESPACE)
        }
    except ForbiddenError:
        words = f"this user may not look into namespace `{_NAMESPACE}`"
        yield Finding(_TOPIC, "processes", "unknown", words)
        return
    if not found:
        words = f"no Deployments in namespace `{_NAMESPACE}`: it runs elsewhere, or not at all"
        yield Finding(_TOPIC, "processes", "unknown", words)
        return
    for name, loss in _PARTS.items():
        if found.get(name):
            yield Finding(_TOPIC, name, "ok", f"{found[name]} available")
        else:
            remedy = f"kubectl -n {_NAMESPACE} describe deployment {name}; Volcano {loss}"
            yield Finding(_TOPIC, name, "lacks", "not available", remedy)


def _queue(cluster: Cluster, name: str) -> Finding:
    what = f"queue `{name}`"
    try:
        queue = cluster.get(kinds.QUEUE, name)
    except ForbiddenError:
        return Finding(_TOPIC, what, "unknown", "this user may not look at queues")
    if queue is None:
        return Finding(_TOPIC, what, "lacks", "there is none", QUEUE_REMEDY)
    state = (queue.get("status") or {}).get("state", "")
    if state != "Open":
        remedy = f"vcctl queue operate -n {name} -a open"
        return Finding(_TOPIC, what, "lacks", f"is {state or 'not open yet'}", remedy)
    spec = queue.get("spec") or {}
    capability = ", ".join(f"{key} {value}" for key, value in (spec.get("capability") or {}).items())
    words = f"open, weight {spec.get('weight', 1)}" + (f", at most {capability}" if capability else "")
    return Finding(_TOPIC, what, "ok", words)


def _webhook(cluster: Cluster, queue: str, namespace: str) -> Finding:
    """Asks for a job that is not made: only a webhook that lives can say yes."""
    try:
        cluster.apply(_smallest_job(queue, namespace), is_trial=True)
    except ForbiddenError:
        return Finding(_TOPIC, "webhook", "unknown", "this user may not make jobs")
    except NotFoundError as error:
        return Finding(_TOPIC, "webhook", "unknown", str(error))
    except RefusedError as error:
        return Finding(_TOPIC, "webhook", "lacks", f"refuses a job: {error}", error.hint or "")
    except KubernetesError as error:
        remedy = f"kubectl -n {_NAMESPACE} get pods -l app=volcano-admission"
        return Finding(_TOPIC, "webhook", "lacks", str(error), remedy)
    return Finding(_TOPIC, "webhook", "ok", "answers, and would take a job")


def _smallest_job(queue: str, namespace: str) -> Object:
    container = {"name": "check", "image": "check", "imagePullPolicy": "Never"}
    task = {
        "name": "check",
        "replicas": 1,
        "minAvailable": 1,
        "maxRetry": 3,
        "template": {"metadata": {}, "spec": {"containers": [container], "restartPolicy": "Never"}},
    }
    return {
        "apiVersion": kinds.VOLCANO_JOB.api_version,
        "kind": kinds.VOLCANO_JOB.name,
        "metadata": {"name": "clickmill-cluster-check", "namespace": namespace},
        "spec": {
            "minAvailable": 1,
            "maxRetry": 1,
            "queue": queue,
            "schedulerName": "volcano",
            "tasks": [task],
        },
    }
