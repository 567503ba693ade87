"""Whose turn it is to submit a job: two who do it at once would leave objects of both.

A job is several objects, and a cluster has no writes of several at once. So whoever makes or changes them
makes the ConfigMap `NAME-turn` first, which only one can, and deletes it afterwards. What is written is
decided within the turn, by what is there then. One who was killed leaves it behind; others end that turn when
it has gone on for longer than any takes.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill.errors import ClickmillError, ConflictError, StateError
from clickmill.kube import kinds
from clickmill.submit.kubernetes.metadata import head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickmill.kube.client import Cluster
    from clickmill.submit.kubernetes.metadata import Object
    from clickmill.submit.kubernetes.plan import JobPlan

PATIENCE_S = 60.0
"""With a turn of somebody else: twice what volumes are waited for, which is most of one."""
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Turn:
    """Ours, to submit one job."""

    cluster: Cluster
    plan: JobPlan
    uid: str

    def check(self) -> None:
        """Raises StateError where others have ended it, since it took too long."""
        name, namespace = self.plan.names.turn, self.plan.namespace
        item = self.cluster.get(kinds.CONFIG_MAP, name, namespace=namespace)
        if item is None or item["metadata"]["uid"] != self.uid:
            raise StateError(f"ConfigMap `{name}` is not ours any more: this took over {PATIENCE_S:.0f} s")


def turn_map(plan: JobPlan) -> Object:
    """There while somebody submits the job. It holds nothing: whose it is, its UID tells."""
    return head(kinds.CONFIG_MAP, plan, plan.names.turn)


@contextmanager
def our_turn(cluster: Cluster, plan: JobPlan, tell: Callable[[str], None]) -> Iterator[Turn]:
    """Nobody else submits the job within the block; waits until others have done so."""
    uid = _take(cluster, plan, tell)
    try:
        yield Turn(cluster, plan, uid)
    finally:
        # Left behind it costs others their patience, and is no reason to hide what became of the job.
        with suppress(ClickmillError):
            _end(cluster, plan, uid)


def _take(cluster: Cluster, plan: JobPlan, tell: Callable[[str], None]) -> str:
    name, namespace = plan.names.turn, plan.namespace
    theirs, since = "", 0.0
    while True:
        with suppress(ConflictError):
            return str(cluster.create(turn_map(plan))["metadata"]["uid"])
        item = cluster.get(kinds.CONFIG_MAP, name, namespace=namespace)
        if item is None:
            continue
        if not theirs:
            tell(f"somebody else submits job `{plan.names.job}` at this moment: waiting for the end of that")
        if item["metadata"]["uid"] != theirs:
            theirs, since = item["metadata"]["uid"], time.monotonic()
        elif time.monotonic() - since > PATIENCE_S:
            _end(cluster, plan, theirs)
            continue
        time.sleep(_POLL_S)


def _end(cluster: Cluster, plan: JobPlan, uid: str) -> None:
    with suppress(ConflictError):  # it has been ended, and another one has begun
        cluster.delete(kinds.CONFIG_MAP, plan.names.turn, namespace=plan.namespace, uid=uid)
