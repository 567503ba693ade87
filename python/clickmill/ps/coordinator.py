"""What is said to the coordinator of a cluster, and what it answers."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

from clickmill import _core
from clickmill.errors import EpochError, WireError
from clickmill.ps.wire import settings_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Message = dict[str, Any]

_LEAST_S = 6.0
"""That one question may take: the coordinator takes 3 s to say that there is nothing to say yet."""
_MOST_S = 60.0
_BETWEEN_ATTEMPTS_S = 0.1
_FAREWELL_MS = 3000
_PATIENCE_S = 5.0
"""For the coordinator to notice what a trainer has noticed."""


class EpochChanged(Exception):  # noqa: N818 - no failure: the cluster goes on from somewhere else
    """The cluster is in a new epoch: what is under way is void, the new place is known."""


class Coordinator:
    """A connection to the coordinator; one question at a time, from any thread."""

    def __init__(self, settings: Message, address: str, *, deadline_s: float = _MOST_S) -> None:
        self.address = address
        self._link = _core.ControlLink(settings_json(settings), address)
        self._deadline_ms = round(min(max(deadline_s, _LEAST_S), _MOST_S) * 1000)

    def ask(self, kind: str, /, **fields: Any) -> Message:
        """Ask, and get the answer as it came; WireError where nobody answers."""
        return self._ask(kind, fields, self._deadline_ms)

    def say_farewell(self, **fields: Any) -> None:
        """Say that this one leaves; one that does not answer soon finds out by itself."""
        with contextlib.suppress(WireError):
            self._ask("leave", fields, _FAREWELL_MS)

    def _ask(self, kind: str, fields: Message, deadline_ms: int) -> Message:
        request = json.dumps({"request": {"kind": kind, **fields}})
        answer: Message = json.loads(self._link.ask(request, deadline_ms))
        return answer

    def metrics(self) -> Message:
        """The global metrics of the stage under way, and the updates so far."""
        answer: Message = json.loads(self._link.ask(json.dumps("metrics"), self._deadline_ms))
        return answer


class Membership:
    """A trainer's place in a cluster: its incarnation, and a heart that beats on a thread of its own."""

    def __init__(self, settings: Message, address: str, welcome: Message, *, patience_s: float) -> None:
        self._patience_s = patience_s
        """How long a coordinator that does not answer is believed to come back."""
        self.incarnation: int = welcome["incarnation"]
        self.number: int = welcome["trainer"]
        self.place: Message = welcome["place"]
        self.fence: int = welcome["fence"]
        self.wanted_fence = self.fence
        """As the heartbeat was last told: for a trainer that speaks to no server for long."""
        self.state: str | None = welcome["state"]
        self.units: list[Message] = welcome["terms"]["units"]
        self.passes: list[Message] = welcome["terms"]["passes"]
        self.snapshots: str = welcome["terms"]["snapshots"]
        self._interval_s: float = welcome["terms"]["heartbeat_ms"] / 1000
        self._coordinator = Coordinator(settings, address, deadline_s=patience_s)
        self._heart = Coordinator(settings, address, deadline_s=patience_s)
        self._stop = threading.Event()
        self.end: Message | None = None
        """The summary of the run, when the heart was told that it is over."""
        self.has_lost_servers = False
        """Whether the cluster was found to wait for servers; set here, taken back by who has heeded it."""
        self.abandon: Callable[[], None] = lambda: None
        """Called by the heart when the epoch is over: whatever waits for a server waits for nothing."""
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
        """Wait until the cluster is in an epoch that this trainer does not know: EpochChanged then.

        For one that a server has refused. It may not ask for work: that would say that nothing of it is under
        way. WireError where the coordinator has no new epoch to give, so that only joining again helps.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            # No fence has this number: the answer says what became of the epoch, and parks nobody.
            answer = self._ask("fence", number=0, state=None)
            if answer["kind"] == "end":
                return
            if answer["kind"] == "wait":
                deadline = time.monotonic() + _PATIENCE_S
            elif time.monotonic() > deadline:
                raise WireError("a server refuses this trainer, and the coordinator knows of no reason")
            else:
                time.sleep(_BETWEEN_ATTEMPTS_S)

    def duty_done(self, duty: int, outcome: Message) -> None:
        """Give the outcome of a duty."""
        self._ask_plain("duty_done", incarnation=self.incarnation, duty=duty, outcome=outcome)

    def leave(self) -> None:
        """Go; what is held of this trainer is settled, its leases go to others."""
        self.close()
        self._coordinator.say_farewell(incarnation=self.incarnation)

    def close(self) -> None:
        """Let the heart stop."""
        self._stop.set()

    def _ask(self, kind: str, /, **fields: Any) -> Message:
        answer = self._ask_plain(kind, incarnation=self.incarnation, epoch=self.epoch, **fields)
        if answer["kind"] == "changed":
            self.place = answer["place"]
            raise EpochChanged
        if answer["kind"] == "wait" and not answer["is_running"]:
            self.has_lost_servers = True
        return answer

    def _ask_plain(self, kind: str, /, **fields: Any) -> Message:
        answer = self._coordinator.ask(kind, **fields)
        if answer["kind"] == "refused":
            error = EpochError if answer["may_join"] else WireError
            raise error(f"the coordinator refuses this trainer: {answer['reason']}")
        return answer

    def _beat(self) -> None:
        heard = time.monotonic()
        while not self._stop.wait(self._interval_s):
            try:
                answer = self._heart.ask(
                    "heartbeat",
                    incarnation=self.incarnation,
                    epoch=self.epoch,
                    statistics=self.statistics(),
                )
            except WireError:
                # The next step or lease finds out and knows what to do; one that waits for a server does not.
                if time.monotonic() - heard > self._patience_s:
                    self.abandon()
                continue
            heard = time.monotonic()
            if answer["kind"] == "end":
                self.end = answer["summary"]
            if answer["kind"] in {"refused", "end"} or answer.get("epoch", 0) > self.epoch:
                self.abandon()
            if answer["kind"] == "beat":
                self.wanted_fence = answer["fence"]
