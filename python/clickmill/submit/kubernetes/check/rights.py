"""What the user may do in the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.kube import kinds
from clickmill.submit.kubernetes.check.finding import Finding
from clickmill.submit.kubernetes.rights import PLAIN, SHARED, VOLCANO, may

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.kube.client import Cluster, Object

_TOPIC = "rights"


def check_rights(cluster: Cluster, namespace: str, *, has_volcano: bool) -> Iterator[Finding]:
    """One line for all rights that are there, one for each resource of which some are not."""
    missing: dict[str, list[str]] = {}
    asked = (*SHARED, *(VOLCANO if has_volcano else PLAIN))
    for right in asked:
        if not may(cluster, right, namespace):
            missing.setdefault(right.resource, []).append(right.verb)
    granted = len(asked) - sum(map(len, missing.values()))
    if granted:
        yield Finding(_TOPIC, "to submit and follow jobs", "ok", f"{granted} of {len(asked)} rights")
    for resource, verbs in missing.items():
        yield Finding(_TOPIC, resource, "lacks", f"may not {', '.join(verbs)}", _remedy(cluster, namespace))


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
