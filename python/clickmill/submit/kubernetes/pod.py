"""The template of the pods of a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.config.backend.pod_values import OUTPUT, WORKING_FOLDER
from clickmill.submit.kubernetes.environment import GRACE_PERIOD_S, environment
from clickmill.submit.kubernetes.names import PACKAGE_ANNOTATION
from clickmill.submit.kubernetes.placement import affinity, node_selector, tolerations
from clickmill.submit.kubernetes.security import container_security, pod_security
from clickmill.submit.kubernetes.volumes import mounts, volumes

if TYPE_CHECKING:
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan, RolePlan

CONTAINER = "clickmill"
PREEMPTABLE_ANNOTATION = "volcano.sh/preemptable"


def pod_template(plan: JobPlan, role: RolePlan, *, scheduler: str) -> Object:
    """Of every pod of the role. All fields that would be filled in otherwise are stated."""
    # Files in /package change in pods that run; with their digest here other files make another job.
    annotations = {PACKAGE_ANNOTATION: plan.package_digest}
    if plan.is_volcano:
        # Where jobs of higher priority or of other queues may take room, trainers give way, for the others go
        # on without them. Volcano itself counts the pods of a gang, and does not look which ones it takes.
        annotations[PREEMPTABLE_ANNOTATION] = "true" if role.name == "trainer" else "false"
    return {
        "metadata": {"labels": plan.names.pod_labels(role.name), "annotations": annotations},
        "spec": _spec(plan, role, scheduler),
    }


def _spec(plan: JobPlan, role: RolePlan, scheduler: str) -> Object:
    settings = plan.settings
    spec: Object = {
        "automountServiceAccountToken": True,
        "containers": [_container(plan, role)],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": False,
        # `OnFailure` would have the kubelet start a container again in its pod: the pod never fails, and
        # nobody above hears of an exit code that says that another try is of no use.
        "restartPolicy": "Never",
        "schedulerName": scheduler,
        "securityContext": pod_security(),
        "serviceAccountName": plan.names.job,
        "subdomain": plan.names.service,
        "terminationGracePeriodSeconds": GRACE_PERIOD_S,
        "tolerations": tolerations(plan),
        "volumes": volumes(plan),
    }
    selector, pod_affinity = node_selector(plan), affinity(plan)
    if selector:
        spec["nodeSelector"] = selector
    if pod_affinity:
        spec["affinity"] = pod_affinity
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    return spec


def _container(plan: JobPlan, role: RolePlan) -> Object:
    container: Object = {
        "name": CONTAINER,
        "image": plan.settings.image,
        "imagePullPolicy": plan.settings.image_pull_policy,
        "args": _arguments(plan),
        "env": environment(plan, role.name),
        "envFrom": [{"secretRef": {"name": plan.names.access, "optional": True}}],
        "ports": [
            {"name": "wire", "containerPort": plan.settings.port, "protocol": "TCP"},
            {"name": "metrics", "containerPort": plan.metrics_port, "protocol": "TCP"},
        ],
        "resources": role.request.to_object(),
        "securityContext": container_security(),
        "terminationMessagePath": "/dev/termination-log",
        # Also of a process that was killed, and could write no message, the last lines are kept.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts(plan),
        "workingDir": WORKING_FOLDER,
    }
    if not plan.is_collective:
        container["readinessProbe"] = _readiness(plan)
    return container


def _arguments(plan: JobPlan) -> list[str]:
    sets = [word for override in plan.overrides for word in ("--set", override)]
    words = ["pod", "-m", plan.config_file, "--output", f"{OUTPUT}/{plan.names.job}", *sets]
    # Kubernetes puts variables in the place of `$(NAME)`, and makes one `$` of two.
    return [word.replace("$", "$$") for word in words]


def _readiness(plan: JobPlan) -> Object:
    """Shown by `kubectl get pods`: a server holds its buckets, a trainer is a member. Nobody waits for it."""
    return {
        "httpGet": {"path": "/readyz", "port": plan.metrics_port, "scheme": "HTTP"},
        "initialDelaySeconds": 0,
        "periodSeconds": 5,
        "timeoutSeconds": 3,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
