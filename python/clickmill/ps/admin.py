"""What a person asks of a cluster that runs: how it is, another number of servers, a snapshot, its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError, WireError
from clickmill.ps.coordinator import Coordinator
from clickmill.ps.wire import wire_settings

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]

_LOOK_S = 0.2
_ENDED = ("ending", "stopped")
_WHO_IS_THERE = (
    "is this the address of pserver 0, and not of its metrics or of another program? "
    "`clickmill pserver` prints it when it listens"
)


class Admin:
    """Speaks to the coordinator of a cluster, and can wait until what was asked for has been done."""

    def __init__(self, address: str, *, token: str | None, tls: dict[str, str] | None = None) -> None:
        wire = wire_settings("admin", "admin", token=token)
        wire["tls"] = tls
        self._coordinator = Coordinator(wire, address)
        self.address = address

    def status(self) -> Message:
        """How the cluster is now."""
        status: Message = self._ask("status")["status"]
        return status

    def scale(self, pservers: int, tell: Callable[[str], None], *, is_waiting: bool = True) -> Message:
        """Move the buckets to another number of servers; the status when it has been done."""
        tell(self._ask("scale", pservers=pservers)["words"])
        if not is_waiting:
            return self.status()
        status = self._wait(lambda status: status["scaling_to"] is None, tell)
        if status["num_servers"] != pservers:
            reason = status["scaling_failure"] or "the run has ended"
            raise ClickmillError(f"the cluster was not scaled to {pservers} pservers: {reason}")
        return status

    def snapshot(self, tell: Callable[[str], None], *, is_waiting: bool = True) -> Message:
        """Take a snapshot at the next fence; the status when it is committed."""
        before = self.status()["snapshot"]["committed"] or 0
        tell(self._ask("snapshot")["words"])
        if not is_waiting:
            return self.status()

        def is_done(status: Message) -> bool:
            snapshot = status["snapshot"]
            return (snapshot["committed"] or 0) > before or bool(snapshot["failure"])

        status = self._wait(is_done, tell)
        if (status["snapshot"]["committed"] or 0) <= before:
            reason = status["snapshot"]["failure"] or "the run has ended"
            raise ClickmillError(f"no snapshot was committed: {reason}")
        return status

    def stop(self, tell: Callable[[str], None], *, is_waiting: bool = True) -> Message:
        """Take a snapshot and end the run; its last status. Whoever starts it again goes on from there."""
        tell(self._ask("stop")["words"])
        last = self.status()
        while is_waiting:
            try:
                status = self.status()
            except WireError:
                # It has gone, which is what was asked for.
                break
            tell_waits(last, status, tell)
            last = status
            time.sleep(_LOOK_S)
        return last

    def _wait(self, is_done: Callable[[Message], bool], tell: Callable[[str], None]) -> Message:
        last: Message = {"waiting": []}
        while True:
            status = self.status()
            if is_done(status) or status["phase"] in _ENDED:
                return status
            tell_waits(last, status, tell)
            last = status
            time.sleep(_LOOK_S)

    def _ask(self, kind: str, /, **fields: Any) -> Message:
        try:
            answer = self._coordinator.ask(kind, **fields)
        except WireError as error:
            error.hint = error.hint or _WHO_IS_THERE
            raise
        if answer["kind"] == "refused":
            raise ClickmillError(f"the coordinator at {self.address} refuses: {answer['reason']}")
        return answer


def tell_waits(before: Message, now: Message, tell: Callable[[str], None]) -> None:
    """Say whom the cluster has begun to wait for since it was looked at before."""
    known = {wait["whom"] for wait in before["waiting"]}
    for wait in now["waiting"]:
        if wait["whom"] not in known:
            tell(wait_words(wait))


def wait_words(wait: Message) -> str:
    """Whom the cluster waits for, and what a person can do."""
    words: str = wait["words"]
    return f"{words}; {wait['advice']}" if wait["advice"] else words
