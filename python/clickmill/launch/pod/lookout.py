"""While a role runs: whether another pod of the job has failed for good, or all trainers have ended well.

A scheduler may end the whole job when one has failed. Where none does, as with plain Jobs of Kubernetes,
servers would wait for trainers that never come, and trainers for servers.

A server that was made again while the run was ending waits for trainers that have all gone by then, and a
trainer that was still starting for servers. Nobody can tell them but the API server.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.launch.pod.api_server import Refused, Unreachable
from clickmill.launch.pod.peers import peer_of, peers_of
from clickmill.launch.pod.pod import ROLE_LABEL
from clickmill.launch.pod.waiting import lost

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.errors import ClickmillError
    from clickmill.launch.pod.api_server import ApiServer, Json
    from clickmill.launch.pod.peers import Peer
    from clickmill.launch.pod.pod import Pod, PodRole

logger = logging.getLogger(__name__)

_LOOK_S = 15.0
_AGAIN_S = 5.0
"""To see a second time that trainers have ended; a server that they could tell ends by itself before."""


class Lookout:
    """Looks now and then, on a thread of its own, until it has seen something or is closed."""

    def __init__(
        self,
        api: ApiServer,
        pod: Pod,
        on_lost: Callable[[], None],
        on_over: Callable[[], None] = lambda: None,
        look_s: float = _LOOK_S,
    ) -> None:
        """`on_lost` ends the role. `on_over` tells a trainer that the run is over, once: one that is at work
        still has something to finish, and only one that waits for servers has been left behind.
        """
        self._api = api
        self._pod = pod
        self._on_lost = on_lost
        self._on_over = on_over
        self._look_s = look_s
        self._closed = threading.Event()
        self._has_seen_end = False
        self._is_told = False
        self.error: ClickmillError | None = None
        """Why the run cannot go on."""
        self.is_over = False
        """Whether the run has ended well, and this server is left behind."""

    def start(self) -> None:
        threading.Thread(target=self._watch, name="lookout", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(min(self._look_s, _AGAIN_S) if self._has_seen_end else self._look_s):
            try:
                self._look()
            except (Unreachable, Refused, ConfigError) as error:
                logger.debug("pods cannot be looked at now: %s", error)  # the role has nothing to do with it
            if self.error is not None:
                logger.error("%s", self.error)
            elif self.is_over:
                logger.info("all trainers have ended, and one of them well: the run is over")
            else:
                continue
            self._on_lost()
            return

    def _look(self) -> None:
        found = [peer for peer in peers_of(self._pods("Failed")).values() if peer.exit_code is not None]
        others = [peer for peer in self._of_run(found) if peer.title != self._pod.title]
        if others:
            self.error = lost(others[0])
        elif self._pod.role == "trainer":
            if not self._is_told and any(peer.tells_end for peer in self._done()):
                self._is_told = True
                self._on_over()
        elif self._pod.role == "pserver":
            has_ended = self._have_trainers_ended()
            self.is_over = has_ended and self._has_seen_end
            self._has_seen_end = has_ended

    def _have_trainers_ended(self) -> bool:
        """Whether one has ended well, which they do only when all passes are done, and none runs any more."""
        return bool(self._done("trainer")) and not self._pods("Running", "trainer")

    def _done(self, role: PodRole | None = None) -> list[Peer]:
        """Other pods of the run that have ended well."""
        done = self._of_run(list(peers_of(self._pods("Succeeded", role)).values()))
        return [peer for peer in done if peer.title != self._pod.title]

    def _of_run(self, found: list[Peer]) -> list[Peer]:
        if not found:
            return []
        pod = self._pod
        own = peer_of(self._api.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"))
        return [peer for peer in found if peer.is_of_run(own)]

    def _pods(self, phase: str, role: PodRole | None = None) -> list[Json]:
        """From the memory of the API server, and as a rule there are none: it costs nobody anything."""
        pod = self._pod
        listed = self._api.get(
            f"/api/v1/namespaces/{pod.namespace}/pods",
            labelSelector=pod.selector if role is None else f"{pod.selector},{ROLE_LABEL}={role}",
            fieldSelector=f"status.phase={phase}",
            resourceVersion="0",
        )
        items: list[Json] = listed["items"]
        return items
