"""Real servers in this process, and trainers of theirs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from tests.unit.pserver import start_pserver

from clickmill import _core
from clickmill.ps.coordinator import Coordinator
from clickmill.train.cluster.stream import Stream
from clickmill.train.cluster.trainer import ClusterTrainer

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from clickmill.config import Config
    from clickmill.data.source import BatchSource

    Message = dict[str, Any]
    Floats = NDArray[np.float32]
    Signs = NDArray[np.uint64]


class Servers:
    """As many as a test wants; they end with it."""

    def __init__(self, folder: Path, num_servers: int) -> None:
        self.running: list[_core.Pserver] = []
        self._num_servers = num_servers
        for index in range(num_servers):
            coordinator = self.running[0].address if index else None
            self.running.append(start_pserver(folder, index, num_servers, coordinator))

    @property
    def address(self) -> str:
        return self.running[0].address

    def join(self, job: Message) -> Message:
        """Become one more member, without a heart."""
        coordinator = Coordinator(wire(), self.address)
        while True:
            answer = coordinator.ask("join", name="test", job=job)
            if answer["kind"] == "welcome":
                return answer

    def total(self, name: str) -> int:
        """A statistic of all servers together."""
        statistics = (json.loads(server.health())["statistics"] for server in self.running)
        return sum(each[name] for each in statistics)

    def stop(self) -> None:
        for server in self.running:
            server.stop()


def wire(**changes: Any) -> Message:
    return {
        "role": "trainer",
        "name": "test",
        "deadline_ms": 60_000,
        "retries": 3,
        "num_threads": 2,
        **changes,
    }


def open_session(welcome: Message, num_dense: int = 0, **changes: Any) -> _core.Session:
    place = {
        "epoch": welcome["place"]["epoch"],
        "incarnation": welcome["incarnation"],
        "servers": welcome["place"]["servers"],
        "route": welcome["place"]["route"],
        "num_dense": num_dense,
    }
    return _core.Session(json.dumps(wire(**changes)), json.dumps(place))


class ByHand:
    """A trainer of one unit, one table and seven dense parameters whose every step is made by hand."""

    RATE = 0.5

    def __init__(self, servers: Servers, job: Message) -> None:
        self._welcome = servers.join(job)
        self.session = self.open_session()
        coordinator = Coordinator(wire(), servers.address)
        who = {"incarnation": self._welcome["incarnation"], "epoch": self._welcome["place"]["epoch"]}
        grant = coordinator.ask("lease", **who, holding=[])
        # Nothing is read: batches are made up.
        self._stream = Stream.of_grant(grant, source=cast("BatchSource", None))

    def open_session(self) -> _core.Session:
        return open_session(self._welcome, 7)

    def push(self, ticket: _core.Ticket, lookup: _core.Lookup, gradient: float) -> _core.Push:
        """The same gradient for all rows and parameters."""
        lookup.add_gradients(np.full(lookup.values().shape, gradient, np.float32))
        dense = [[np.full(7, gradient, np.float32)]]
        entry = self._stream.account("here", samples=1, batches=1, is_last=False)
        none = np.zeros(0, np.float32)
        return _core.Push(ticket, [lookup], [self.RATE], 1.0, dense, self.RATE, 1, entry, [], none)

    def begin(self, signs: Signs) -> tuple[_core.Ticket, _core.Lookup]:
        """Read rows to be trained on."""
        ticket = self.session.locate_signs(0, signs)
        return ticket, self.session.step([], [ticket])[2][0][0]

    def rows(self, signs: Signs) -> Floats:
        """As the servers hold them."""
        return self.session.step([], [self.session.locate_signs(0, signs)], False)[2][0][0].values()


class Watched(ClusterTrainer):
    """A trainer whose sessions and workers can be looked at after the run."""

    def __init__(self, config: Config, servers: Servers, **options: Any) -> None:
        runner = config.runner[0]
        options = {"name": "test", "token": None, **options}
        super().__init__(config, runner, config.phase[0], coordinator=servers.address, **options)
        self.servers = servers
        self.sessions: list[_core.Session] = []
        self.workers: list[Any] = []

    def _session(self, membership: Any) -> _core.Session:
        self.sessions.append(super()._session(membership))
        return self.sessions[-1]

    def _take_leases(self, crew: Any, membership: Any, worker: Any) -> None:
        self.workers.append(worker)
        super()._take_leases(crew, membership, worker)

    def traffic(self) -> tuple[int, int, int]:
        """Bytes sent and received, and frames sent, by all sessions."""
        each = [session.traffic() for session in self.sessions]
        sent, received, frames = (sum(numbers) for numbers in zip(*each, strict=True))
        return sent, received, frames
