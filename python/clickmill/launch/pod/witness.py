"""How pods of a job have failed, written down where it outlives them: in the ConfigMap `NAME-failures`.

Whoever starts pods again may delete the failed one within a second, with its exit code and its last words;
and a process that is killed for want of memory takes its launcher along, which could have told. So the first
pod of each role watches all others of the job. `clickmill job status` reads what they have written.
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import ConfigError
from clickmill.launch.pod.api_server import Refused, Unreachable
from clickmill.launch.pod.peers import peer_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill.launch.pod.api_server import ApiServer, Json
    from clickmill.launch.pod.pod import Pod

logger = logging.getLogger(__name__)

MAX_FAILURES = 20
"""That are kept: a job that has more is over."""
_WATCH_S = 240
_BETWEEN_S = 2.0
_ATTEMPTS = 5
_CONFLICT = 409
_ASKED = frozenset({0, 143})
"""Codes of pods that ended well, or as they were told to."""
_MAX_WORDS = 2000


def failures_name(job: str) -> str:
    """Of the ConfigMap that holds the failures of a job's pods."""
    return f"{job}-failures"


@dataclass(frozen=True, slots=True)
class Failure:
    """One pod that has failed."""

    pod: str
    title: str
    """`trainer 0`."""
    node: str
    exit_code: int | None
    """None for a pod that was evicted, or whose node was lost."""
    reason: str
    """The kubelet's word: `Error`, `OOMKilled`, `Evicted`."""
    message: str
    finished: str
    """Moment."""


def failure_of(pod: Mapping[str, Any]) -> Failure | None:
    """How a pod has failed; None for one that has not, or has no role."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    peer = peer_of(pod)
    container = (status.get("containerStatuses") or [{}])[0]
    ended = (container.get("state") or {}).get("terminated") or {}
    code = ended.get("exitCode")
    if peer is None or status.get("phase") != "Failed" or code in _ASKED:
        return None
    return Failure(
        pod=metadata["name"],
        title=peer.title,
        node=str((pod.get("spec") or {}).get("nodeName") or ""),
        exit_code=code,
        reason=str(status.get("reason") or ended.get("reason") or ""),
        message=str(ended.get("message") or status.get("message") or "")[-_MAX_WORDS:],
        finished=str(ended.get("finishedAt") or metadata.get("creationTimestamp") or ""),
    )


def read_failures(config_map: Mapping[str, Any] | None) -> list[Failure]:
    """What a ConfigMap of failures holds, the oldest first; what is none of ours is left out."""
    found = []
    for text in ((config_map or {}).get("data") or {}).values():
        try:
            found.append(Failure(**json.loads(text)))
        except (ValueError, TypeError):
            continue
    return sorted(found, key=lambda failure: failure.finished)


class Witness:
    """Watches the pods of a job on a thread of its own. It is no reason to fail for anybody if it cannot."""

    def __init__(self, api: ApiServer, pod: Pod) -> None:
        self._api = api
        self._pod = pod
        self._pods = f"/api/v1/namespaces/{pod.namespace}/pods"
        self._book = f"/api/v1/namespaces/{pod.namespace}/configmaps/{failures_name(pod.job)}"
        self._known: set[str] = set()
        self._closed = threading.Event()

    def start(self) -> None:
        """Only the first of each role watches: two see everything, and more would see no more."""
        if self._pod.index == 0:
            threading.Thread(target=self._run, name="witness", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._watch()
            except Refused as error:
                logger.debug("failures of pods are not written down: %s", error)
                return  # a job by another manifest: there is no such ConfigMap, or no right to it
            except (Unreachable, ConfigError) as error:
                logger.debug("pods cannot be watched now: %s", error)
            self._closed.wait(_BETWEEN_S)

    def _watch(self) -> None:
        listed = self._api.get(self._pods, labelSelector=self._pod.selector)
        for item in listed["items"]:
            self._see(item)
        query = {
            "labelSelector": self._pod.selector,
            "resourceVersion": listed["metadata"]["resourceVersion"],
        }
        for event in self._api.watch(self._pods, seconds=_WATCH_S, **query):
            if event["type"] == "ERROR" or self._closed.is_set():
                return
            self._see(event["object"])

    def _see(self, item: Json) -> None:
        uid = item["metadata"].get("uid", item["metadata"]["name"])
        failure = failure_of(item)
        if failure is None or uid in self._known:
            return
        self._write(str(uid), failure)
        self._known.add(uid)

    def _write(self, uid: str, failure: Failure) -> None:
        for _ in range(_ATTEMPTS):
            book = self._api.get(self._book)
            data: dict[str, str] = dict(book.get("data") or {})
            if uid in data:
                return
            data[uid] = json.dumps(asdict(failure))
            while len(data) > MAX_FAILURES:
                del data[min(data, key=lambda key: _finished(data[key]))]
            try:
                self._api.put(self._book, {**book, "data": data})
            except Refused as error:
                if error.status != _CONFLICT:
                    raise
                continue  # the other witness was faster
            return


def _finished(text: str) -> str:
    try:
        return str(json.loads(text)["finished"])
    except (ValueError, KeyError, TypeError):
        return ""
