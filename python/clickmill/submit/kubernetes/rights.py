"""Every right in a namespace that `clickmill submit` and `clickmill job` make use of.

deploy/k8s/submitter.yaml grants these and no others, and `clickmill cluster check` asks for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError, NotFoundError
from clickmill.kube import kinds
from clickmill.kube.errors import rights_hint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clickmill.kube.client import Cluster, Object
    from clickmill.kube.kinds import Kind


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource."""

    verb: str
    kind: Kind
    part: str = ""
    """A subresource: `log` of pods."""

    @property
    def resource(self) -> str:
        """As kubectl takes it: `jobs.batch.volcano.sh`, `pods/proxy`."""
        return f"{self.kind.resource}/{self.part}" if self.part else self.kind.resource


def _rights(kind: Kind, verbs: str, part: str = "") -> tuple[Right, ...]:
    return tuple(Right(verb, kind, part) for verb in verbs.split())


# To apply is to patch, and to create where nothing is there; `job delete` finds by labels what it deletes.
_MADE = "get list create patch delete"
_SCALED = f"{_MADE} update"
_SEEN = "get list"
"""A job of the other scheduler, that has the same name."""

SHARED: tuple[Right, ...] = (
    *_rights(kinds.SERVICE_ACCOUNT, _MADE),
    *_rights(kinds.ROLE, _MADE),
    *_rights(kinds.ROLE_BINDING, _MADE),
    # Nobody can give away what they do not have, and the pods of a job update one of each of these two.
    *_rights(kinds.SECRET, f"{_MADE} update"),
    *_rights(kinds.CONFIG_MAP, f"{_MADE} update"),
    *_rights(kinds.CLAIM, _MADE),
    *_rights(kinds.NETWORK_POLICY, _MADE),
    *_rights(kinds.SERVICE, _MADE),
    # `fetch` makes a pod that reads; pods of a job watch each other.
    *_rights(kinds.POD, "get list watch create delete"),
    *_rights(kinds.POD, "get", "log"),
    # The coordinator is asked with GET, and told to scale or stop with POST.
    *_rights(kinds.POD, "get create", "proxy"),
    *_rights(kinds.EVENT, "list"),
)
VOLCANO: tuple[Right, ...] = (
    *_rights(kinds.VOLCANO_JOB, _SCALED),
    *_rights(kinds.POD_GROUP, "get"),
    *_rights(kinds.JOB, _SEEN),
)
PLAIN: tuple[Right, ...] = (*_rights(kinds.JOB, _SCALED), *_rights(kinds.VOLCANO_JOB, _SEEN))


def may(cluster: Cluster, right: Right, namespace: str | None = None) -> bool:
    """Whether the user has the right."""
    attributes = {
        "namespace": namespace or cluster.namespace,
        "verb": right.verb,
        "group": right.kind.group,
        "resource": right.kind.plural,
        "subresource": right.part,
    }
    review: Object = {
        "apiVersion": kinds.ACCESS_REVIEW.api_version,
        "kind": kinds.ACCESS_REVIEW.name,
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    return bool(cluster.create(review)["status"]["allowed"])


def require(cluster: Cluster, what: str, rights: Iterable[Right]) -> None:
    """Raise ForbiddenError before anything is changed where the user lacks a right to change the rest."""
    try:
        missing = [right for right in rights if not may(cluster, right)]
    except (ForbiddenError, NotFoundError):
        return  # where nobody may ask, the change itself tells
    if missing:
        listed = ", ".join(f"`{right.verb} {right.resource}`" for right in missing)
        raise ForbiddenError(
            f"{what}: the right {listed} is missing in namespace `{cluster.namespace}`; nothing was changed",
            hint=rights_hint(cluster.namespace),
            status=403,
        )
