"""What is said to the coordinator of a cluster, and what it answers."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any

from clickmill import _core
from clickmill.errors import EpochError, WireError
from clickmill.ps.wire import settings_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Message = dict[str, Any]

_DEADLINE_MS = 60_000


class EpochChanged(Exception):  # noqa: N818 - no failure: the cluster goes on from somewhere else
    """The cluster is in a new epoch: what is under way is void, the new place is known."""


class Coordinator:
    """A connection to the coordinator; one question at a time, from any thread."""

    def __init__(self, settings: Message, address: str) -> None:
        self.address = address
        self._link = _core.ControlLink(settings_json(settings), address)

    def ask(self, kind: str, /, **fields: Any) -> Message:
        """Ask, and get the answer as it came; WireError where nobody answers."""
        request = json.dumps({"request": {"kind": kind, **fields}})
        answer: Message = json.loads(self._link.ask(request, _DEADLINE_MS))
        return answer

    def metrics(self) -> Message:
        """The global metrics of the stage under way, and the updates so far."""
        answer: Message = json.loads(self._link.ask(json.dumps("metrics"), _DEADLINE_MS))
        return answer


class Membership:
    """A trainer's place in a cluster: its incarnation, and a heart that beats on a thread of its own."""

    def __init__(self, settings: Message, address: str, welcome: Message) -> None:
        self.incarnation: int = welcome["incarnation"]
        self.number: int = welcome["trainer"]
        self.place: Message = welcome["place"]
        self.fence: int = welcome["fence"]
        self.state: str | None = welcome["state"]
        self._coordinator = Coordinator(settings, address)
        self._heart = Coordinator(settings, address)
        self._stop = threading.Event()
        self.statistics: Callable[[], Message] = lambda: {"samples_per_s": 0.0, "shares": {}}
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    @property
    def epoch(self) -> int:
        """The life of the cluster that this trainer knows."""
        epoch: int = self.place["epoch"]
        return epoch

    def lease(self, holding: Sequence[int]) -> Message:
        """Ask for work; `holding` are the leases at hand. The answer may be to wait."""
        return self._ask("lease", holding=list(holding))

    def park(self, number: int, state: str | None) -> Message:
        """Wait at a fence until all are there and what is due there has been done."""
        while True:
            answer = self._ask("fence", number=number, state=state)
            if answer["kind"] != "wait":
                return answer

    def find_place(self) -> None:
        """Wait until the cluster is in an epoch that this trainer does not know: EpochChanged then."""
        while True:
            answer = self._ask("lease", holding=[])
            if answer["kind"] == "end":
                return

    def duty_done(self, duty: int, outcome: Message) -> None:
        """Give the outcome of a duty."""
        self._ask_plain("duty_done", incarnation=self.incarnation, duty=duty, outcome=outcome)

    def leave(self) -> None:
        """Go; what is held of this trainer is settled, its leases go to others."""
        self.close()
        with contextlib.suppress(WireError):
            self._coordinator.ask("leave", incarnation=self.incarnation)

    def close(self) -> None:
        """Let the heart stop."""
        self._stop.set()

    def _ask(self, kind: str, /, **fields: Any) -> Message:
        answer = self._ask_plain(kind, incarnation=self.incarnation, epoch=self.epoch, **fields)
        if answer["kind"] == "changed":
            self.place = answer["place"]
            raise EpochChanged
        return answer

    def _ask_plain(self, kind: str, /, **fields: Any) -> Message:
        answer = self._coordinator.ask(kind, **fields)
        if answer["kind"] == "refused":
            error = EpochError if answer["may_join"] else WireError
            raise error(f"the coordinator refuses this trainer: {answer['reason']}")
        return answer

    def _beat(self) -> None:
        while not self._stop.wait(1.0):
            try:
                self._heart.ask(
                    "heartbeat",
                    incarnation=self.incarnation,
                    epoch=self.epoch,
                    statistics=self.statistics(),
                )
            except WireError:
                # The next step or lease finds out, and knows what to do.
                continue
