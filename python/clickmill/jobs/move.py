"""Buckets on their way to another number of servers, as the coordinator tells it and the cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError, DeadlineError, StateError
from clickmill.jobs.coordinator import ENDED, CoordinatorProxy, find_coordinator
from clickmill.jobs.job import look_up
from clickmill.jobs.pods import current, list_pods
from clickmill.jobs.waits import WaitTeller, waits_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill.jobs.job import Job
    from clickmill.kube.client import Cluster

    Tell = Callable[[str], None]

_LOOK_S = 0.5
_PATIENCE_S = 30.0
"""For a coordinator that does not answer, or has ended and nothing else says why."""


class Move:
    """One order to have `number` servers."""

    def __init__(self, cluster: Cluster, job: Job, coordinator: CoordinatorProxy, number: int) -> None:
        self._cluster = cluster
        self._job = job
        self._coordinator = coordinator
        # An order may take its time; a look that does would keep others from finding a pod that came back.
        self._looked_at = CoordinatorProxy(cluster, job.name, coordinator.pod)
        self._number = number
        status = coordinator.status()
        self._last: dict[str, Any] = status
        self.before: int = status["num_servers"]

    @property
    def command(self) -> str:
        """What gives the order once more."""
        return self._cluster.command(f"job scale {self._job.name} --pservers {self._number}")

    def order(self) -> str:
        """Have it begin; what is going to happen."""
        if self._last["scaling_to"] == self._number:
            # A command before this one was interrupted: the coordinator takes no order twice.
            return f"buckets move to {self._number} pservers already"
        return self._coordinator.order("scale", pservers=self._number)

    def is_wanted(self) -> bool:
        """Whether the run has so many servers, or is about to; False where nobody answers."""
        try:
            status = self._looked_at.status()
        except ClickmillError:
            return False
        return self._number in (status["num_servers"], status["scaling_to"])

    def wait(self, tell: Tell, deadline_s: float) -> None:
        """Until buckets have moved. StateError where they are not going to, DeadlineError where it lasts."""
        deadline = time.monotonic() + deadline_s
        teller = WaitTeller(tell)
        heard = time.monotonic()
        while True:
            silence: ClickmillError | None = None
            try:
                self._last = self._looked_at.status()
                if self._has_moved(self._last):
                    return
            except ClickmillError as error:
                silence = self._not_scaled("the run has ended") if self._has_ended else error
            if silence is None and not self._has_ended:
                heard = time.monotonic()
                self._check(self._last)
                teller.look(waits_of(self._last))
            else:
                if self._look_at_job():
                    heard = time.monotonic()
                if time.monotonic() - heard > _PATIENCE_S:
                    raise silence or self._not_scaled("the run has ended")
            if time.monotonic() > deadline:
                watch = self._cluster.command(f"job status {self._job.name} --watch")
                raise DeadlineError(
                    f"buckets have not moved to {self._number} pservers after {deadline_s:g} seconds",
                    hint=f"they still do; `{watch}` shows how far they are, and `{self.command}` waits again "
                    "and has the job keep the number",
                )
            time.sleep(_LOOK_S)

    def _has_moved(self, status: dict[str, Any]) -> bool:
        return status["scaling_to"] is None and status["num_servers"] == self._number

    @property
    def _has_ended(self) -> bool:
        return self._last["phase"] in ENDED

    def _check(self, status: dict[str, Any]) -> None:
        """Raises where a coordinator that goes on does not move buckets."""
        if status["scaling_to"] is not None:
            return
        if status["scaling_failure"]:
            raise self._not_scaled(status["scaling_failure"])
        error = self._not_scaled("pserver 0 was made again meanwhile, and the order is lost")
        error.hint = f"the job goes on with {status['num_servers']} pservers; say `{self.command}` again"
        raise error

    def _look_at_job(self) -> bool:
        """Whether pserver 0 is being made again; raises what the cluster knows of the end of the job."""
        try:
            job = look_up(self._cluster, self._job.name)
            pods = [] if job is None else current(list_pods(self._cluster, job.name))
            coordinator = find_coordinator(self._cluster, self._job.name, pods)
        except ClickmillError:
            return False  # it is the way to the cluster that is gone
        if job is None:
            raise self._not_scaled("it was deleted meanwhile")
        is_unfinished = self._last["pass"] + 1 < self._last["num_passes"] or (
            self._last["units_done"] < self._last["units"]
        )
        is_done = job.phase in {"Completing", "Completed"}
        if job.is_leaving or job.phase in {"Stopping", "Stopped", "Deleted"} or (is_done and is_unfinished):
            raise self._not_scaled("it was stopped meanwhile")
        if is_done:
            raise self._not_scaled("the run has ended")
        if job.phase == "Failed":
            raise self._not_scaled("the run has failed")
        if coordinator is not None and coordinator.pod.uid != self._looked_at.pod.uid:
            # Without Volcano a pod that is made again has another name.
            self._looked_at = coordinator
            return True
        return coordinator is None

    def _not_scaled(self, why: str) -> StateError:
        return StateError(f"the job was not scaled to {self._number} pservers: {why}")
