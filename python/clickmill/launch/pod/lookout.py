"""While a role runs: whether another pod of the job has failed for good, and nothing is left to wait for.

A scheduler may end the whole job then. Where none does, as with plain Jobs of Kubernetes, servers would wait
for trainers that never come, and trainers for servers.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.launch.pod.api_server import Refused, Unreachable
from clickmill.launch.pod.peers import peer_of, peers_of
from clickmill.launch.pod.waiting import lost

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.errors import ClickmillError
    from clickmill.launch.pod.api_server import ApiServer
    from clickmill.launch.pod.pod import Pod

logger = logging.getLogger(__name__)

_LOOK_S = 15.0


class Lookout:
    """Looks now and then, on a thread of its own, until it has seen something or is closed."""

    def __init__(
        self, api: ApiServer, pod: Pod, on_lost: Callable[[], None], look_s: float = _LOOK_S
    ) -> None:
        self._api = api
        self._pod = pod
        self._on_lost = on_lost
        self._look_s = look_s
        self._closed = threading.Event()
        self.error: ClickmillError | None = None
        """Why the run cannot go on."""

    def start(self) -> None:
        threading.Thread(target=self._watch, name="lookout", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        while not self._closed.wait(self._look_s):
            try:
                self._look()
            except (Unreachable, Refused, ConfigError) as error:
                logger.debug("pods cannot be looked at now: %s", error)  # the role has nothing to do with it
            if self.error is not None:
                logger.error("%s", self.error)
                self._on_lost()
                return

    def _look(self) -> None:
        pod = self._pod
        # From the memory of the API server, and as a rule there are none: it costs nobody anything.
        failed = self._api.get(
            f"/api/v1/namespaces/{pod.namespace}/pods",
            labelSelector=pod.selector,
            fieldSelector="status.phase=Failed",
            resourceVersion="0",
        )
        found = [peer for peer in peers_of(failed["items"]).values() if peer.exit_code is not None]
        if not found:
            return
        own = peer_of(self._api.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"))
        others = [peer for peer in found if peer.title != pod.title and peer.is_of_run(own)]
        self.error = lost(others[0]) if others else None
