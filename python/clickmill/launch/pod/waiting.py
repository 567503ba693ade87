"""Waiting for the pods without which a role cannot begin, with words about those that are missing."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill.errors import (
    ClickmillError,
    ConfigError,
    DataError,
    FormatError,
    GaveUpError,
    MemberLostError,
)
from clickmill.launch.pod.access import asked, pods_denied
from clickmill.launch.pod.api_server import Refused, Unreachable
from clickmill.launch.pod.peers import absent, peers_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.launch.pod.api_server import ApiServer, Json
    from clickmill.launch.pod.deadline import Deadline
    from clickmill.launch.pod.peers import Peer
    from clickmill.launch.pod.pod import Pod

_LOOK_S = 20
"""Seconds for which changes are listened to before all pods are listed again."""
_REMIND_S = 30.0
_ABSENT_S = 30.0
"""For a server that has no pod at all: it may not be needed any more."""
_BETWEEN_S = 0.5
_KINDS: dict[int, type[ClickmillError]] = {2: ConfigError, 3: DataError, 4: FormatError, 5: GaveUpError}


class RunOver(Exception):  # noqa: N818 - no failure
    """The run has ended well without this pod; `words` say how that is known."""


@dataclass(slots=True)
class Speaker:
    """Says what is new at once, and what is not every now and then."""

    say: Callable[[str], None]
    _last: str = ""
    _when: float = 0.0

    def __call__(self, words: str, *, more: str = "") -> None:
        """`more` is said with it, but changes all the time."""
        now = time.monotonic()
        if words != self._last or now - self._when >= _REMIND_S:
            self._last, self._when = words, now
            self.say(words + more)


class Waiting:
    """Of one pod for its peers."""

    def __init__(self, api: ApiServer, pod: Pod, deadline: Deadline, say: Callable[[str], None]) -> None:
        self._api = api
        self._pod = pod
        self._deadline = deadline
        self._tell = Speaker(say)
        self._path = f"/api/v1/namespaces/{pod.namespace}/pods"
        self._pods: dict[str, Json] = {}
        """By name, as last heard of."""

    def until_all_run(self) -> list[Peer]:
        """The peers, by number. Raises RunOver where there is nothing to begin any more.

        Raises MemberLostError when the time is up, and the error of a peer that has failed for good.
        """
        while True:
            version = self._list()
            peers = self._look()
            if peers is None:
                peers = self._listen(version)
            if peers is not None:
                return peers

    def until_named(self, peer: Peer) -> None:
        """Until the name at which all meet stands for the pod that runs now, and not for an earlier one."""
        if peer.title == self._pod.title or not peer.ip:
            return
        address = self._pod.meeting
        while True:
            try:
                found = addresses_of(address.host)
                reason = f"it stands for {', '.join(sorted(found))}, not for {peer.ip}"
            except OSError as error:
                found, reason = set(), error.strerror or str(error)
            if peer.ip in found:
                return
            if self._deadline.is_over:
                raise MemberLostError(
                    f"{peer.title} runs, but its name `{address.host}` is not known after "
                    f"{self._deadline.seconds:g} seconds: {reason}",
                    hint=f"does the headless Service `{self._pod.service}` select the pods of the job, "
                    "and is it their `subdomain`?",
                )
            self._tell(f"waits for the name `{address.host}`: {reason}")
            time.sleep(_BETWEEN_S)

    def _list(self) -> str:
        """Learn of all pods of the job; the version that this is."""
        pod, api = self._pod, self._api
        denied = pods_denied(api, pod.namespace, pod.job)

        def ask() -> Json:
            return api.get(self._path, labelSelector=pod.selector)

        try:
            listed = asked(ask, deadline=self._deadline, tell=self._tell, denied=denied)
        except Refused as error:
            raise ConfigError(f"the API server refuses to list pods: {error}") from error
        self._pods = {item["metadata"]["name"]: item for item in listed["items"]}
        version: str = listed["metadata"]["resourceVersion"]
        return version

    def _listen(self, version: str) -> list[Peer] | None:
        """Hear of changes for a while; the peers as soon as all run."""
        seconds = max(1, min(_LOOK_S, round(self._deadline.left_s)))
        query = {"labelSelector": self._pod.selector, "resourceVersion": version}
        try:
            for event in self._api.watch(self._path, seconds=seconds, **query):
                if event["type"] == "ERROR":  # the version is too old by now
                    break
                name = event["object"]["metadata"]["name"]
                if event["type"] == "DELETED":
                    self._pods.pop(name, None)
                else:
                    self._pods[name] = event["object"]
                peers = self._look()
                if peers is not None:
                    return peers
        except (Unreachable, Refused):
            time.sleep(_BETWEEN_S)  # to list them again finds out what is the matter
        return None

    def _look(self) -> list[Peer] | None:
        """The peers where all of them run; else says who does not."""
        pod = self._pod
        known = peers_of(self._pods.values())
        self._check_over(known)
        peers = [known.get((pod.peers, index)) or absent(pod.peers, index) for index in range(pod.num_peers)]
        missing = [peer for peer in peers if self._is_missing(peer)]
        if not missing:
            return peers
        own = known.get((pod.role, pod.index))
        for peer in missing:
            if peer.is_hopeless and (peer.exit_code is None or peer.is_of_run(own)):
                raise lost(peer)
        if self._deadline.is_over:
            listed = "; ".join(f"{peer.title} {peer.words}" for peer in missing)
            raise MemberLostError(
                f"waited {self._deadline.seconds:g} seconds for other pods of the job: {listed}",
                hint="`cluster.wait_for_members_s` of the runner says how long to wait",
            )
        num_there, left_s = len(peers) - len(missing), self._deadline.left_s
        self._tell(
            "waits for " + "; ".join(f"{peer.title}, which {peer.words}" for peer in missing),
            more=f" ({num_there} of {len(peers)} run; gives up in {left_s:.0f} s)",
        )
        return None

    def _is_missing(self, peer: Peer) -> bool:
        # This very process is proof that it runs, whatever the API server has heard.
        if peer.state == "runs" or peer.title == self._pod.title:
            return False
        # A server may have left when the job was made smaller; the coordinator knows who is needed.
        is_other_server = peer.role == "pserver" and peer.index > 0
        has_left = peer.state == "done" or (not peer.created and self._deadline.waited_s > _ABSENT_S)
        return not (is_other_server and has_left)

    def _check_over(self, known: dict[tuple[str, int], Peer]) -> None:
        own = known.get((self._pod.role, self._pod.index))
        for peer in known.values():
            if peer.tells_end and peer.title != self._pod.title and peer.is_of_run(own):
                raise RunOver(f"{peer.title} {peer.words}: the run is over")


def lost(peer: Peer) -> ClickmillError:
    """The error for a peer that cannot come, of the kind that it ended with itself."""
    kind = _KINDS.get(peer.exit_code or 0, MemberLostError)
    return kind(f"{peer.title} cannot come: it {peer.words}")


def addresses_of(host: str) -> set[str]:
    """What a name stands for now; OSError where nobody knows it."""
    return {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
