"""What a cluster has noted about the objects of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.kube import kinds

if TYPE_CHECKING:
    from collections.abc import Collection

    from clickmill.kube.client import Cluster, Object


@dataclass(frozen=True, slots=True)
class Event:
    """Something that went wrong, once or several times."""

    about: str
    """Name of the object."""
    kind: str
    """Of the object."""
    reason: str
    message: str
    moment: str


def warnings(cluster: Cluster, names: Collection[str], *, prefix: str, since: str) -> list[Event]:
    """Warnings about objects of these names, or of a name that begins so, the newest first.

    Only those from the moment `since` on: an earlier job may have had the same name. Nothing where this user
    may not read events.
    """
    try:
        found = cluster.list(kinds.EVENT, fields={"type": "Warning"})
    except ForbiddenError:
        return []
    events = [_event(item) for item in found]
    chosen = [
        each
        for each in events
        if each.moment >= since and (each.about in names or each.about.startswith(prefix))
    ]
    return sorted(chosen, key=lambda event: event.moment, reverse=True)


def _event(item: Object) -> Event:
    about = item["involvedObject"]
    moment = item.get("lastTimestamp") or item.get("eventTime") or item["metadata"]["creationTimestamp"]
    return Event(
        about=about.get("name") or "",
        kind=about.get("kind") or "",
        reason=item.get("reason") or "",
        message=" ".join((item.get("message") or "").split()),
        moment=str(moment),
    )
