"""Where a job writes: its volume, and on which node that can be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.config.backend.pod_values import OUTPUT
from clickmill.errors import NotFoundError, StateError
from clickmill.jobs.job import is_ours
from clickmill.kube import kinds
from clickmill.submit.kubernetes.names import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.jobs.job import Job
    from clickmill.jobs.pods import Pod
    from clickmill.kube.client import Cluster, Object

_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
IMAGE_ANNOTATION = "clickmill.io/image"
"""On the claim of a job that is gone: what its files can be read with."""


@dataclass(frozen=True, slots=True)
class Output:
    """The volume of a job, and what a pod needs that is to read it."""

    volume: Object
    """Its source, as it stands in the spec of a pod."""
    node: str | None
    """The only one that can read it now, where there is only one."""
    image: str
    pod_fields: dict[str, Any]
    """Of the pods of the job, which those that read for it need, too."""

    @property
    def words(self) -> str:
        """`claim ctr-output`."""
        claim = self.volume.get("persistentVolumeClaim")
        return (
            f"claim `{claim['claimName']}`"
            if claim
            else f"folder `{self.volume['hostPath']['path']}` of a node"
        )


_TAKEN_OVER = ("imagePullSecrets", "nodeSelector", "tolerations", "securityContext", "enableServiceLinks")


def find_output(cluster: Cluster, job: Job, pods: Sequence[Pod], *, image: str | None = None) -> Output:
    """The output volume of a job, stopped or over or not.

    NotFoundError where there is none, StateError where nothing says which image can read it.
    """
    template = next((found for role in job.roles if (found := job.template(role))), None)
    if template is None:
        return _of_stopped(cluster, job, image)
    spec = template["spec"]
    container = spec["containers"][0]
    mount = next((each for each in container["volumeMounts"] if each["mountPath"] == OUTPUT), None)
    if mount is None:
        raise NotFoundError(f"job `{job.name}` has no volume at `{OUTPUT}`: it writes elsewhere")
    volume = next(each for each in spec["volumes"] if each["name"] == mount["name"])
    source = {key: value for key, value in volume.items() if key != "name"}
    fields = {key: spec[key] for key in _TAKEN_OVER if key in spec}
    pull_policy = container.get("imagePullPolicy", "IfNotPresent")
    return Output(
        volume=source,
        node=_only_node(cluster, source, pods),
        image=image or container["image"],
        pod_fields={**fields, "imagePullPolicy": pull_policy},
    )


def _of_stopped(cluster: Cluster, job: Job, image: str | None) -> Output:
    name = Names(job.name).output
    claim = cluster.get(kinds.CLAIM, name)
    if claim is None or not is_ours(claim):
        raise NotFoundError(
            f"job `{job.name}` is {job.phase.lower()}, and has no claim of its own",
            hint="submit it again, then fetch; or read the volume that it was given with a pod of your own",
        )
    image = image or (claim["metadata"].get("annotations") or {}).get(IMAGE_ANNOTATION)
    if not image:
        raise StateError(
            f"job `{job.name}` is {job.phase.lower()}: nothing says which image its files can be read with",
            hint="give the one that it ran with: `--image NAME`",
        )
    source = {"persistentVolumeClaim": {"claimName": name}}
    return Output(source, None, image, {"securityContext": _SECURITY})


def remember_image(cluster: Cluster, job: Job) -> None:
    """Note on the claim of a job which image reads it, before what says so is deleted."""
    template = next((found for role in job.roles if (found := job.template(role))), None)
    claim = cluster.get(kinds.CLAIM, Names(job.name).output)
    if template is None or claim is None or not is_ours(claim):
        return
    image = template["spec"]["containers"][0]["image"]
    patch = {"metadata": {"annotations": {IMAGE_ANNOTATION: image}}}
    cluster.patch(kinds.CLAIM, claim["metadata"]["name"], patch)


_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "runAsGroup": 1000,
    "fsGroup": 1000,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}


def _only_node(cluster: Cluster, source: Object, pods: Sequence[Pod]) -> str | None:
    """The node of those who write, where others do not see what they write."""
    claim = source.get("persistentVolumeClaim")
    if claim is not None:
        found = cluster.get(kinds.CLAIM, claim["claimName"])
        if found is None:
            raise NotFoundError(f"there is no claim `{claim['claimName']}`, on which the job writes")
        if _SHARED & set(found["spec"].get("accessModes") or ()):
            return None
        # A volume that is in use on a node cannot be attached to another one.
        return next((pod.node for pod in pods if pod.node and pod.ending is None), None)
    if "hostPath" in source:
        chief = [pod for pod in pods if pod.node and (pod.role != "pserver") and pod.index == 0]
        return next((pod.node for pod in [*chief, *pods] if pod.node), None)
    return None
