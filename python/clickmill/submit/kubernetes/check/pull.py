"""Whether nodes get the image, and what is in it: a pod of it is started, and goes again."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

import clickmill
from clickmill.errors import ClickmillError, ForbiddenError, KubernetesError
from clickmill.kube import kinds
from clickmill.kube.logs import pod_log
from clickmill.submit.kubernetes.check.finding import Finding
from clickmill.submit.kubernetes.placement import node_selector, tolerations
from clickmill.submit.kubernetes.security import container_security, pod_security

if TYPE_CHECKING:
    from clickmill.kube.client import Cluster, Object
    from clickmill.submit.kubernetes.plan import JobPlan

IMAGE_STATES = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
IMAGE_REMEDY = (
    "is `kubernetes.image` spelt right, and is it in a registry that the nodes reach? A private one needs "
    "`kubernetes.image_pull_secrets`"
)
_CONTAINER = "clickmill"
_DEADLINE_S = 300.0
_LOOK_S = 0.5
_RESOURCES = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}


def check_pull(cluster: Cluster, plan: JobPlan, *, deadline_s: float = _DEADLINE_S) -> Finding:
    """What becomes of a pod that asks the image for its version, where pods of the job may run."""
    what = f"a pod of `{plan.settings.image}`"
    name = f"clickmill-cluster-check-{secrets.token_hex(2)}"
    try:
        cluster.create(_pod(plan, name))
    except ForbiddenError:
        return Finding("image", what, "unknown", "this user may not make pods")
    except KubernetesError as error:
        return Finding("image", what, "lacks", str(error), error.hint or "")
    try:
        return _outcome(cluster, plan, name, what, time.monotonic() + deadline_s)
    finally:
        _remove(cluster, plan, name)


def _outcome(cluster: Cluster, plan: JobPlan, name: str, what: str, deadline: float) -> Finding:
    while True:
        pod = cluster.get(kinds.POD, name, namespace=plan.namespace)
        if pod is None:
            return Finding("image", what, "unknown", "somebody has deleted it")
        state = _state(pod)
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if terminated is not None:
            return _ended(cluster, plan, pod, what, terminated)
        if waiting.get("reason") in IMAGE_STATES:
            return Finding("image", what, "lacks", waiting.get("message") or waiting["reason"], IMAGE_REMEDY)
        if time.monotonic() > deadline:
            remedy = f"kubectl -n {plan.namespace} get events --field-selector involvedObject.name={name}"
            return Finding(
                "image", what, "unknown", f"has not started: {_why(pod) or waiting.get('reason')}", remedy
            )
        time.sleep(_LOOK_S)


def _ended(cluster: Cluster, plan: JobPlan, pod: Object, what: str, terminated: Object) -> Finding:
    node = pod["spec"].get("nodeName", "a node")
    words = _said(cluster, plan, pod["metadata"]["name"])
    remedy = "build the image with deploy/docker/build of this version"
    if terminated["exitCode"] != 0:
        found = f"`clickmill --version` ends with exit code {terminated['exitCode']}: {words}"
        return Finding("image", what, "lacks", found, remedy)
    if words != f"clickmill {clickmill.__version__}":
        found = f"has `{words}`, and this is {clickmill.__version__}"
        return Finding("image", what, "warn", found, remedy)
    return Finding("image", what, "ok", f"runs on node `{node}`: {words}")


def _said(cluster: Cluster, plan: JobPlan, name: str) -> str:
    try:
        with pod_log(cluster.within(plan.namespace), name, container=_CONTAINER) as lines:
            return " ".join(line.text for line in lines).strip()
    except ClickmillError as error:
        return str(error)


def _state(pod: Object) -> Object:
    containers = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return containers[0].get("state") or {}


def _why(pod: Object) -> str:
    """Why it has no node."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] != "True":
            return str(condition.get("message") or "")
    return ""


def _remove(cluster: Cluster, plan: JobPlan, name: str) -> None:
    try:
        cluster.delete(kinds.POD, name, namespace=plan.namespace, grace_period_s=0)
    except ClickmillError:
        return  # it has ended, and takes nothing but its name


def _pod(plan: JobPlan, name: str) -> Object:
    settings = plan.settings
    container = {
        "name": _CONTAINER,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "args": ["--version"],
        "resources": _RESOURCES,
        "securityContext": container_security(),
    }
    spec = {
        "activeDeadlineSeconds": int(2 * _DEADLINE_S),
        "automountServiceAccountToken": False,
        "containers": [container],
        "imagePullSecrets": [{"name": secret} for secret in settings.image_pull_secrets],
        "nodeSelector": node_selector(plan),
        "restartPolicy": "Never",
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 1,
        "tolerations": tolerations(plan),
    }
    metadata = {"name": name, "namespace": plan.namespace, "labels": {"app.kubernetes.io/name": "clickmill"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
