"""Things that backend.yaml names and that must be there: storage, claims, priority, pull secrets, image."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.kube import kinds
from clickmill.submit.kubernetes.check.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config.backend import KubernetesConfig
    from clickmill.kube.client import Cluster, Object
    from clickmill.kube.kinds import Kind

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def check_storage(cluster: Cluster, settings: KubernetesConfig, namespace: str) -> Iterator[Finding]:
    """Where output goes, and the claims that are named."""
    output = settings.output
    if output.claim:
        yield _claim(cluster, output.claim, namespace)
    elif not output.host_path:
        yield _storage_class(cluster, output.storage_class)
    for volume in settings.volumes:
        if volume.claim:
            yield _claim(cluster, volume.claim, namespace)


def _claim(cluster: Cluster, name: str, namespace: str) -> Finding:
    what = f"claim `{name}`"
    claim, refusal = _look(cluster, kinds.CLAIM, name, namespace)
    if refusal:
        return Finding("storage", what, "unknown", refusal)
    if claim is None:
        return Finding(
            "storage", what, "lacks", f"not in namespace `{namespace}`", "make it, or name another"
        )
    phase = (claim.get("status") or {}).get("phase", "")
    modes = ", ".join(claim["spec"]["accessModes"])
    if phase == "Lost":
        remedy = f"kubectl describe pvc {name} -n {namespace}"
        return Finding("storage", what, "lacks", "its volume is lost", remedy)
    return Finding("storage", what, "ok", f"{phase}, {modes}")


def _storage_class(cluster: Cluster, name: str) -> Finding:
    what = f"storage class `{name}`" if name else "default storage class"
    remedy = (
        "name one of `kubectl get storageclass` as `output.storage_class`, or a claim or a folder of a node "
        "as `output.claim` or `output.host_path`"
    )
    try:
        classes = cluster.list(kinds.STORAGE_CLASS)
    except ForbiddenError:
        return Finding("storage", what, "unknown", "this user may not look at storage classes")
    found = [item for item in classes if _is_meant(item, name)]
    if not found:
        known = ", ".join(f"`{item['metadata']['name']}`" for item in classes) or "none"
        return Finding("storage", what, "lacks", f"there is none; known: {known}", remedy)
    item = found[0]
    return Finding("storage", what, "ok", f"`{item['metadata']['name']}` by {item['provisioner']}")


def _is_meant(item: Object, name: str) -> bool:
    if name:
        return bool(item["metadata"]["name"] == name)
    return (item["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"


def check_named(cluster: Cluster, settings: KubernetesConfig, namespace: str) -> Iterator[Finding]:
    """Priority class and pull secrets."""
    if settings.priority_class:
        name = settings.priority_class
        remedy = "kubectl apply -f deploy/k8s/priorities.yaml, or name one of `kubectl get priorityclass`"
        yield _named(cluster, kinds.PRIORITY_CLASS, name, namespace, remedy)
    for name in settings.image_pull_secrets:
        remedy = f"kubectl create secret docker-registry {name} -n {namespace} --docker-server=..."
        # Pods start without it, and it is missed only where the image cannot be had without signing in.
        found = _named(cluster, kinds.SECRET, name, namespace, remedy)
        if found.state == "lacks":
            words = "there is none; an image that nodes have, or that anybody may pull, needs none"
            found = replace(found, state="warn", found=words)
        yield found


def _named(cluster: Cluster, kind: Kind, name: str, namespace: str, remedy: str) -> Finding:
    what = f"{kind.name} `{name}`"
    item, refusal = _look(cluster, kind, name, namespace)
    if refusal:
        return Finding("objects", what, "unknown", refusal)
    if item is None:
        return Finding("objects", what, "lacks", "there is none", remedy)
    return Finding("objects", what, "ok", "there")


def _look(cluster: Cluster, kind: Kind, name: str, namespace: str) -> tuple[Object | None, str]:
    try:
        return cluster.get(kind, name, namespace=namespace), ""
    except ForbiddenError:
        return None, f"this user may not look at {kind.resource}"


def check_image(settings: KubernetesConfig, nodes: list[Object] | None) -> Iterator[Finding]:
    """Which nodes have it, where they may be looked at.

    A registry is not asked: nodes may reach one that this machine does not.
    """
    if not settings.image:
        remedy = "name it as `kubernetes.image`; deploy/docker/Dockerfile makes one"
        yield Finding("image", "kubernetes.image", "lacks", "is not set", remedy)
        return
    names = _spellings(settings.image)
    having = [
        node["metadata"]["name"]
        for node in nodes or []
        if any(names & set(image.get("names") or []) for image in node["status"].get("images") or [])
    ]
    what = f"`{settings.image}`"
    if nodes is None:
        remedy = "`clickmill cluster check --pull` tries it with a pod"
        yield Finding("image", what, "unknown", "this user may not look at nodes", remedy)
    elif having:
        yield Finding("image", what, "ok", f"on {len(having)} of {len(nodes)} nodes")
    elif settings.image_pull_policy == "Never":
        words = "on none of the nodes, and `image_pull_policy: Never`"
        yield Finding("image", what, "lacks", words, "load it onto the nodes, or let them pull it")
    else:
        words = "on no node yet: the first pod of each has to pull it"
        yield Finding("image", what, "unknown", words, "`clickmill cluster check --pull` tries it with a pod")


def _spellings(image: str) -> set[str]:
    """`a:1` is `docker.io/library/a:1` to a node; no tag means `latest`."""
    whole = image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"
    first = whole.partition("/")[0]
    if "/" not in whole:
        return {whole, f"docker.io/library/{whole}"}
    return {whole} if "." in first or ":" in first or first == "localhost" else {whole, f"docker.io/{whole}"}
