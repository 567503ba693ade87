"""Other pods of the job, as the API server describes them, in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from clickmill.launch.failure import exit_words
from clickmill.launch.pod.pod import ROLE_LABEL
from clickmill.launch.pod.verdict import FINAL_CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clickmill.launch.pod.pod import PodRole

    Json = Mapping[str, Any]

State = Literal["runs", "waits", "done", "failed"]

_INDEX_KEYS = ("batch.kubernetes.io/job-completion-index",)
_IMAGE_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_HOPELESS_REASONS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
"""Of containers that no waiting helps."""
_MAX_WORDS = 500
_RANK = {"runs": 3, "waits": 2, "done": 1, "failed": 0}


@dataclass(frozen=True, slots=True)
class Peer:
    """How one pod is."""

    role: str
    index: int
    state: State
    words: str
    """What there is to say of it, to be put behind its name: `is not scheduled: ...`."""
    ip: str = ""
    exit_code: int | None = None
    """Of a role that has failed for good."""
    is_hopeless: bool = False
    """It cannot come, however long it is waited for."""
    created: str = ""
    finished: str = ""
    """When its container ended, if it has; times are texts that can be compared."""
    owner: str = ""
    """Who makes it again: the same for all pods of a Volcano Job, one for each role otherwise."""

    @property
    def title(self) -> str:
        return f"{self.role} {self.index}"

    @property
    def tells_end(self) -> bool:
        """Whether it has ended well, as trainers, workers and the coordinator do when all passes are done."""
        return self.state == "done" and (self.role != "pserver" or self.index == 0)

    def is_of_run(self, own: Peer | None) -> bool:
        """Whether how it has ended says something to pod `own`.

        Pods of an earlier job of the same name may be there still. They have another owner, and ended before
        `own` was made.
        """
        return own is None or self.owner == own.owner or self.finished >= own.created


def peers_of(pods: Iterable[Json]) -> dict[tuple[str, int], Peer]:
    """By role and number. Of several with the same number the one that is most alive, then the newest."""
    found: dict[tuple[str, int], Peer] = {}
    for pod in pods:
        peer = peer_of(pod)
        if peer is None:
            continue
        key = (peer.role, peer.index)
        other = found.get(key)
        if other is None or (_RANK[peer.state], peer.created) > (_RANK[other.state], other.created):
            found[key] = peer
    return found


def absent(role: PodRole, index: int) -> Peer:
    """One that has no pod."""
    return Peer(role, index, "waits", "has no pod yet")


def peer_of(pod: Json) -> Peer | None:
    """None for a pod without a role or a number: it is none of the job's processes."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    role = (metadata.get("labels") or {}).get(ROLE_LABEL)
    index = _index(metadata)
    if role is None or index is None:
        return None
    found = state_of(pod)
    return Peer(
        role=role,
        index=index,
        state=found.state,
        words=found.words,
        ip=status.get("podIP") or "",
        exit_code=found.final_code,
        is_hopeless=found.is_hopeless or found.final_code is not None,
        created=metadata.get("creationTimestamp") or "",
        finished=_finished(status),
        owner=owner_of(pod),
    )


def owner_of(pod: Json) -> str:
    """Id of what makes the pod again; empty for one that somebody made by hand."""
    owners = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("uid") or "")


def _finished(status: Json) -> str:
    container = (status.get("containerStatuses") or [{}])[0]
    return str(((container.get("state") or {}).get("terminated") or {}).get("finishedAt") or "")


def _index(metadata: Json) -> int | None:
    for place in ("labels", "annotations"):
        for key in _INDEX_KEYS:
            text = (metadata.get(place) or {}).get(key)
            if text is not None:
                return int(text)
    found = re.search(r"-(\d+)$", metadata["name"])
    return int(found[1]) if found else None


class Found(NamedTuple):
    """What the status of a pod comes to."""

    state: State
    words: str
    final_code: int | None = None
    is_hopeless: bool = False


def state_of(pod: Json) -> Found:
    """How a pod is, of whatever job."""
    status = pod.get("status") or {}
    container = (status.get("containerStatuses") or [{}])[0]
    phase = status.get("phase")
    if phase == "Failed":
        return _failed(status, container)
    if phase == "Succeeded":
        return Found("done", "has ended well")
    if pod["metadata"].get("deletionTimestamp"):
        return Found("waits", "is being removed, to be made again")
    if phase == "Unknown":
        return Found("waits", "is on a node that does not answer")
    return _of_container(pod, status, container)


def _of_container(pod: Json, status: Json, container: Json) -> Found:
    state = container.get("state") or {}
    if "running" in state:
        return Found("runs", "runs")
    ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated")
    if ended:
        return _ended(container, ended)
    return _pending(pod, status, state.get("waiting") or {})


def _failed(status: Json, container: Json) -> Found:
    ended = (container.get("state") or {}).get("terminated") or {}
    code = ended.get("exitCode")
    if status.get("reason") or code is None:  # evicted, the node was lost, ...
        reason, message = status.get("reason") or "no reason given", status.get("message") or ""
        return Found("failed", f"has failed: {_short(reason, message)}")
    return Found("failed", f"has failed: its role {exit_words(code)}{_said(ended)}", _final(code))


def _ended(container: Json, ended: Json) -> Found:
    """A container that has ended, in a pod that starts it again."""
    code, times = ended.get("exitCode", 0), container.get("restartCount", 0) + 1
    if code == 0:
        return Found("waits", "has ended, and is started again")
    reason = "ran out of memory" if ended.get("reason") == "OOMKilled" else exit_words(code)
    again = "" if times == 1 else f" for the {_ordinal(times)} time"
    return Found("waits", f"{reason}{again}, and is started again{_said(ended)}", _final(code))


def _final(code: int) -> int | None:
    return code if code in FINAL_CODES else None


def _pending(pod: Json, status: Json, waiting: Json) -> Found:
    reason, message = waiting.get("reason") or "", waiting.get("message") or ""
    if reason in _IMAGE_REASONS:
        image = pod["spec"]["containers"][0].get("image")
        words = f"cannot start, for its image `{image}` cannot be had: {_short(reason, message)}"
        return Found("waits", words, is_hopeless=reason in _HOPELESS_REASONS)
    if reason and reason not in {"ContainerCreating", "PodInitializing"}:
        return Found("waits", f"cannot start: {_short(reason, message)}")
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            words = _short(condition.get("reason") or "", condition.get("message") or "")
            return Found("waits", f"is not scheduled: {words}")
    node = (pod.get("spec") or {}).get("nodeName")
    return Found("waits", f"starts on node `{node}`" if node else "is not scheduled yet")


def _said(ended: Json) -> str:
    message = (ended.get("message") or "").strip()
    return f": {_cut(message)}" if message else ""


def _short(reason: str, message: str) -> str:
    return _cut(f"{reason}: {message}" if reason and message else reason or message)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_WORDS else text[:_MAX_WORDS] + " ..."


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in {11, 12, 13} else 0, "th")
    return f"{number}{ending}"
