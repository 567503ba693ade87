"""What a pod does when it ends: its parameters go into a snapshot, and nobody is left behind."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from clickmill.errors import ClickmillError
from clickmill.launch.pod.api_server import Refused, Unreachable
from clickmill.launch.pod.deadline import Deadline
from clickmill.launch.pod.pod import ROLE_LABEL

if TYPE_CHECKING:
    from clickmill.launch.address import Address
    from clickmill.launch.pod.api_server import ApiServer
    from clickmill.launch.pod.pod import Pod

logger = logging.getLogger(__name__)

_LINGER_S = 30.0
_BETWEEN_S = 0.5
_LOOK_S = 2.0
_NOT_FOUND = 404


def take_snapshot(
    coordinator: Address, *, token: str | None, tls: dict[str, str] | None, patience_s: float
) -> None:
    """Ask for a snapshot and wait until it is committed, for no longer than `patience_s` seconds.

    A server that is drained or evicted is told some time before it is killed. Without this the others would
    go back to the last snapshot when it comes back elsewhere, and that may be minutes old.
    """
    outcome: list[str] = []

    def ask() -> None:
        from clickmill.ps.admin import Admin  # noqa: PLC0415 - few pods are ever drained

        try:
            status = Admin(str(coordinator), token=token, tls=tls).snapshot(logger.debug)
            outcome.append(f"pod.snapshot committed={status['snapshot']['committed']}")
        except ClickmillError as error:
            outcome.append(f"pod.snapshot missing={error}")

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience_s)
    words = outcome[0] if outcome else f"pod.snapshot missing=not committed within {patience_s:g} seconds"
    logger.info("%s", words)


def linger(api: ApiServer, pod: Pod, seconds: float = _LINGER_S) -> None:
    """Of a server when the run is over: until trainers have gone, for so many seconds at most.

    When all servers have ended well the job is complete, and whoever is left of it is killed. That should not
    be a trainer that is writing its summary.
    """
    deadline = Deadline(seconds)
    while not deadline.is_over:
        try:
            running = api.get(
                f"/api/v1/namespaces/{pod.namespace}/pods",
                labelSelector=f"{pod.selector},{ROLE_LABEL}=trainer",
                fieldSelector="status.phase=Running",
            )
        except (Refused, Unreachable, ClickmillError):
            return  # nobody to ask
        if not any("deletionTimestamp" not in item["metadata"] for item in running["items"]):
            return
        time.sleep(_BETWEEN_S)


def is_wanted_elsewhere(api: ApiServer, pod: Pod) -> bool:
    """Whether this pod, which was told to end, has to be made again by whoever counts failures.

    Somebody deletes it, as a rule: a drain, a preemption, a scaling. Where nobody does, its node evicts it or
    shuts down.
    """
    try:
        found = api.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", seconds=_LOOK_S)
    except Refused as error:
        return error.status != _NOT_FOUND
    except (Unreachable, ClickmillError):
        return False  # as for most
    return "deletionTimestamp" not in found["metadata"]
