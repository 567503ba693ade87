"""What the user may do in the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.check.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.kube.client import Cluster, Object
    from clickmill.kube.kinds import Kind

_TOPIC = "rights"
_WRITE = ("get", "create", "patch", "delete")
SHARED = (
    (kinds.SERVICE_ACCOUNT, _WRITE),
    (kinds.ROLE, _WRITE),
    (kinds.ROLE_BINDING, _WRITE),
    (kinds.SECRET, (*_WRITE, "update")),
    (kinds.CONFIG_MAP, (*_WRITE, "list")),
    (kinds.CLAIM, _WRITE),
    (kinds.NETWORK_POLICY, _WRITE),
    (kinds.SERVICE, _WRITE),
    (kinds.POD, ("get", "list", "watch", "create", "delete")),
    (kinds.EVENT, ("list",)),
)
SUBRESOURCES = (("pods", "log", "get"), ("pods", "proxy", "get"))
VOLCANO = (
    (kinds.VOLCANO_JOB, (*_WRITE, "list")),
    (kinds.POD_GROUP, ("get", "list")),
    (kinds.COMMAND, ("create",)),
)
PLAIN = ((kinds.JOB, (*_WRITE, "list")),)


def check_rights(cluster: Cluster, namespace: str, *, has_volcano: bool) -> Iterator[Finding]:
    """One line for all rights that are there, one for each resource of which some are not."""
    missing: dict[str, list[str]] = {}
    asked = 0
    for kind, verbs in (*SHARED, *(VOLCANO if has_volcano else PLAIN)):
        for verb in verbs:
            asked += 1
            if not _may(cluster, namespace, kind, verb):
                missing.setdefault(kind.resource, []).append(verb)
    for plural, part, verb in SUBRESOURCES:
        asked += 1
        if not _may(cluster, namespace, kinds.POD, verb, part):
            missing.setdefault(f"{plural}/{part}", []).append(verb)
    granted = asked - sum(map(len, missing.values()))
    if granted:
        yield Finding(_TOPIC, "to submit and follow jobs", "ok", f"{granted} of {asked} rights")
    for resource, verbs in missing.items():
        yield Finding(_TOPIC, resource, "lacks", f"may not {', '.join(verbs)}", _remedy(cluster, namespace))


def _may(cluster: Cluster, namespace: str, kind: Kind, verb: str, part: str = "") -> bool:
    attributes = {
        "namespace": namespace,
        "verb": verb,
        "group": kind.group,
        "resource": kind.plural,
        "subresource": part,
    }
    review: Object = {
        "apiVersion": kinds.ACCESS_REVIEW.api_version,
        "kind": kinds.ACCESS_REVIEW.name,
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    return bool(cluster.create(review)["status"]["allowed"])


def _remedy(cluster: Cluster, namespace: str) -> str:
    user = who(cluster) or "USER"
    return (
        f"an administrator types: kubectl apply -n {namespace} -f deploy/k8s/submitter.yaml && "
        f"kubectl create rolebinding clickmill-{_label(user)} -n {namespace} --role=clickmill-submitter "
        f"{_subject(user)}"
    )


def who(cluster: Cluster) -> str:
    """The name that the cluster knows the user by; empty where it does not say."""
    review: Object = {
        "apiVersion": kinds.SELF_REVIEW.api_version,
        "kind": kinds.SELF_REVIEW.name,
        "metadata": {},
    }
    answer = cluster.create(review)
    return str(answer.get("status", {}).get("userInfo", {}).get("username", ""))


def _label(user: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in user.lower()).strip("-")[-40:].strip("-")


def _subject(user: str) -> str:
    parts = user.split(":")
    if parts[:2] == ["system", "serviceaccount"]:
        return f"--serviceaccount={parts[2]}:{parts[3]}"
    return f"--user={user}"
