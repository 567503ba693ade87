"""The pod that reads the output of a job for somebody outside of the cluster, for as long as it takes."""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clickmill.config.backend.pod_values import OUTPUT
from clickmill.errors import ClickmillError, DeadlineError, KubernetesError
from clickmill.jobs.obstacles import pod_obstacle
from clickmill.jobs.pods import CONTAINER, READER, pod_of
from clickmill.kube import kinds
from clickmill.kube.proxy import PodProxy
from clickmill.launch.token import new_token
from clickmill.submit.kubernetes.names import ROLE_LABEL, Names
from clickmill.submit.kubernetes.security import container_security

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickmill.jobs.output import Output
    from clickmill.kube.client import Cluster, Object

    Tell = Callable[[str], None]

PORT = 30241
"""That of metrics: the NetworkPolicy of a job lets it be reached."""
_LIFE_S = 6 * 3600
"""After which Kubernetes ends it, whatever became of the one who asked for it."""
_IDLE_S = 300
"""After which it ends by itself."""
_START_DEADLINE_S = 180.0
_LOOK_S = 0.5
_DEADLINE_S = 60.0
"""For a piece of a file, over a slow line."""
_RESOURCES = {
    "requests": {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "16Mi"},
    "limits": {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "64Mi"},
}


@contextmanager
def reading(cluster: Cluster, job: str, output: Output, tell: Tell) -> Iterator[PodProxy]:
    """A proxy to a pod that gives out the folder of the job's run; the pod goes when the block ends.

    KubernetesError where it cannot start, with the reason; DeadlineError where it does not in time.
    """
    _clear_ended(cluster, job)
    name = f"{job}-{READER}-{secrets.token_hex(2)}"
    token = new_token()
    pod = cluster.create(reader_pod(cluster.namespace, job, name, output))
    try:
        cluster.create(_secret(cluster.namespace, job, name, token, pod))
        tell(f"pod `{name}` reads {output.words}")
        proxy = PodProxy(cluster, name, PORT, token=token, deadline_s=_DEADLINE_S)
        _await_start(cluster, name, proxy, tell)
        yield proxy
    finally:
        _remove(cluster, name)


def reader_pod(namespace: str, job: str, name: str, output: Output) -> Object:
    """What is made: it may read one volume and nothing else, and has no rights in the cluster."""
    fields: dict[str, Any] = dict(output.pod_fields)
    pull_policy = fields.pop("imagePullPolicy", "IfNotPresent")
    spec: Object = {
        **fields,
        "activeDeadlineSeconds": _LIFE_S,
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": CONTAINER,
                "image": output.image,
                "imagePullPolicy": pull_policy,
                "args": [
                    "pod-files", "--folder", f"{OUTPUT}/{job}", "--host", "0.0.0.0",
                    "--port", str(PORT), "--idle", str(_IDLE_S),
                ],
                "env": [
                    {
                        "name": "CLICKMILL_TOKEN",
                        "valueFrom": {"secretKeyRef": {"name": name, "key": "token"}},
                    }
                ],
                "ports": [{"name": "files", "containerPort": PORT, "protocol": "TCP"}],
                "resources": _RESOURCES,
                "securityContext": container_security(),
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": [{"name": "output", "mountPath": OUTPUT, "readOnly": True}],
            }
        ],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "output", **output.volume}],
    }  # fmt: skip
    if output.node is not None:
        spec["affinity"] = {"nodeAffinity": _on_node(output.node)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": _labels(job)},
        "spec": spec,
    }


def _labels(job: str) -> dict[str, str]:
    return {**Names(job).labels, ROLE_LABEL: READER}


def _on_node(node: str) -> Object:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}
    }


def _secret(namespace: str, job: str, name: str, token: str, pod: Object) -> Object:
    """Goes with the pod; nobody else knows what is in it."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": _labels(job),
            "ownerReferences": [owner],
        },
        "type": "Opaque",
        "stringData": {"token": token},
    }


def _await_start(cluster: Cluster, name: str, proxy: PodProxy, tell: Tell) -> None:
    deadline = time.monotonic() + _START_DEADLINE_S
    told = ""
    while True:
        item = cluster.get(kinds.POD, name)
        if item is None:
            raise KubernetesError(f"pod `{name}` was deleted while it was starting")
        pod = pod_of(item)
        if pod.ending is not None:
            raise KubernetesError(f"pod `{name}` {pod.ending.words}", hint=pod.ending.hint)
        if pod.is_running and _answers(proxy):
            return
        reason = pod_obstacle(cluster, pod)
        if reason is not None and reason.words != told:
            told = reason.words
            if reason.kind in {"image", "pod"} and not _is_passing(pod.detail):
                raise KubernetesError(reason.words, hint=reason.remedy)
            tell(reason.words)
        if time.monotonic() > deadline:
            raise DeadlineError(
                f"pod `{name}` has not started after {_START_DEADLINE_S:.0f} seconds: {told or pod.state}",
                hint=f"`kubectl -n {cluster.namespace} describe pod {name}` may tell more while it is there",
            )
        time.sleep(_LOOK_S)


def _is_passing(detail: str) -> bool:
    """The Secret is made a moment after the pod."""
    return "secret" in detail and "not found" in detail


def _answers(proxy: PodProxy) -> bool:
    try:
        return proxy.ask("/healthz").code == 200
    except KubernetesError:
        return False


def _clear_ended(cluster: Cluster, job: str) -> None:
    """Remove those of earlier fetches that were killed."""
    for item in cluster.list(kinds.POD, labels=_labels(job)):
        if (item.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            _remove(cluster, item["metadata"]["name"])


def _remove(cluster: Cluster, name: str) -> None:
    try:
        cluster.delete(kinds.POD, name, grace_period_s=1)
    except ClickmillError:
        return  # it ends by itself when nobody asks any more
