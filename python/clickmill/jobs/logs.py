"""What all pods of a job say, merged by time; followed, with those that come later or are started again."""

from __future__ import annotations

import contextlib
import heapq
import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import (
    ClickmillError,
    ClusterUnreachableError,
    KubernetesError,
    NotFoundError,
    StateError,
)
from clickmill.jobs.job import find_job, look_up
from clickmill.jobs.pods import CONTAINER, current, list_pods
from clickmill.jobs.status import status_of
from clickmill.jobs.waiting import Teller
from clickmill.kube.logs import pod_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from clickmill.jobs.job import Job
    from clickmill.jobs.pods import Pod
    from clickmill.kube.client import Cluster
    from clickmill.kube.logs import LogLine

MAX_STREAMS = 64
"""Pods whose logs are read at the same time."""
_LOOK_S = 1.0
_HEAR_S = 0.1
_HOLD_S = 0.5
"""How long a followed line waits for earlier ones of other pods."""
_AGAIN_S = 1.0
_MAX_QUEUED = 10_000
_DRAIN_S = 10.0
"""For streams to end when the job has."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line and who wrote it."""

    pod: str
    title: str
    """`trainer 0`."""
    line: LogLine

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {"time": self.line.time, "pod": self.pod, "role": self.title, "line": self.line.text}


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which lines are wanted."""

    roles: tuple[str, ...] = ()
    """`trainer`, or `trainer 0` for one of them; empty for all."""
    is_previous: bool = False
    since: str | None = None
    """A moment."""
    tail: int | None = None
    """The last so many of each pod."""

    def wants(self, pod: Pod) -> bool:
        """Whether lines of this pod are asked for."""
        return not self.roles or pod.role in self.roles or pod.title in self.roles


def read_logs(cluster: Cluster, name: str, options: LogOptions) -> Iterator[Said]:
    """Lines that are there now, by time. StateError where no pod has said anything yet."""
    job = find_job(cluster, name)
    pods = [pod for pod in list_pods(cluster, name) if options.wants(pod)]
    chosen = _previous(pods) if options.is_previous else [(pod, False) for pod in pods if pod.has_started]
    if not chosen:
        raise _nothing(cluster, job, pods, options)
    if len(chosen) > MAX_STREAMS:
        raise StateError(
            f"the job has {len(chosen)} pods; the logs of {MAX_STREAMS} can be read at once",
            hint="choose some of them with `--role trainer` or `--role 'trainer 3'`",
        )
    with contextlib.ExitStack() as stack:
        streams = []
        for pod, is_previous in chosen:
            opened = _open(cluster, pod, options, is_previous=is_previous)
            try:
                lines = stack.enter_context(opened)
            except NotFoundError:
                continue  # it has gone since
            streams.append(_said(pod, lines))
        yield from heapq.merge(*streams, key=lambda said: said.line.moment)


def _open(
    cluster: Cluster, pod: Pod, options: LogOptions, *, is_previous: bool
) -> contextlib.AbstractContextManager[Iterator[LogLine]]:
    return pod_log(
        cluster,
        pod.name,
        container=CONTAINER,
        is_previous=is_previous,
        since=options.since,
        tail=options.tail,
    )


def _said(pod: Pod, lines: Iterator[LogLine]) -> Iterator[Said]:
    return (Said(pod.name, pod.title, line) for line in lines)


def _previous(pods: Sequence[Pod]) -> list[tuple[Pod, bool]]:
    """Containers before the last restart: in the same pod, or in the pod whose place another has taken."""
    newest = {pod.uid for pod in current(pods)}
    found = [(pod, True) for pod in pods if pod.num_restarts and pod.uid in newest]
    return found + [(pod, False) for pod in pods if pod.uid not in newest and pod.has_started]


def _nothing(cluster: Cluster, job: Job, pods: Sequence[Pod], options: LogOptions) -> StateError:
    """Why there are no lines."""
    hint = f"`{cluster.command(f'job status {job.name}')}` tells how it is"
    if options.is_previous:
        gone = (
            "; Volcano deletes a pod before it makes it anew, and its log goes with it"
            if job.is_volcano
            else ""
        )
        return StateError(f"no pod of job `{job.name}` was started again{gone}", hint=hint)
    if options.roles and not pods:
        roles = " or ".join(f"`{role}`" for role in options.roles)
        return StateError(f"job `{job.name}` has no pod of {roles}", hint=hint)
    if job.is_over and not pods:
        words = f"job `{job.name}` is {job.phase}, and its pods are gone, with what they said"
        return StateError(words, hint=hint)
    reasons = status_of(cluster, job).reasons
    words = f"no pod of job `{job.name}` has started yet"
    if not reasons:
        return StateError(words, hint=hint)
    return StateError(f"{words}: {reasons[0].words}", hint=reasons[0].remedy or hint)


class Following:
    """Lines of a job as they are written, until it ends.

    A thread for each container reads its log; lines wait for a moment, so that those of other pods that were
    written before them can overtake. What was written before a connection broke is not told twice.
    """

    def __init__(self, cluster: Cluster, name: str, options: LogOptions, tell: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._name = name
        self._options = options
        self._tell = tell
        self._lines: queue.Queue[Said] = queue.Queue(_MAX_QUEUED)
        self._streams: dict[tuple[str, int], _Stream] = {}
        self._is_over = threading.Event()
        self._teller = Teller(cluster, tell)
        self.job = find_job(cluster, name)
        """As it was when it was last looked at."""

    def __iter__(self) -> Iterator[Said]:
        held: list[tuple[str, int, float, Said]] = []
        number = 0
        looked = 0.0
        ended: float | None = None
        try:
            while True:
                now = time.monotonic()
                if now - looked >= _LOOK_S and ended is None:
                    looked = now
                    self._look()
                    ended = now if self.job.is_over else None
                with contextlib.suppress(queue.Empty):
                    # For a moment: pods that always have something to say keep nobody from looking around.
                    while len(held) < _MAX_QUEUED and (left_s := now + _HEAR_S - time.monotonic()) > 0:
                        said = self._lines.get(timeout=left_s)
                        heapq.heappush(held, (said.line.moment, number, time.monotonic() + _HOLD_S, said))
                        number += 1
                is_drained = ended is not None and (
                    self._has_drained() or time.monotonic() - ended > _DRAIN_S
                )
                while held and (is_drained or held[0][2] <= time.monotonic() or len(held) >= _MAX_QUEUED):
                    yield heapq.heappop(held)[3]
                if is_drained and not held and self._lines.empty():
                    return
        finally:
            self._is_over.set()
            while not self._lines.empty():  # whoever waits for room finds it, and then sees that it is over
                self._lines.get_nowait()

    def _look(self) -> None:
        """Learn how the job is, and of containers that are new."""
        try:
            job = look_up(self._cluster, self._name)
            if job is None:
                raise NotFoundError(f"job `{self._name}` was deleted meanwhile", status=404)
            pods = list_pods(self._cluster, self._name)
        except ClusterUnreachableError:
            return  # control planes are started again; streams tell their own troubles
        self.job = job
        if not self._streams and not job.is_over:
            # Nobody says anything yet: why that is.
            self._teller.look(job)
        for pod in pods:
            key = (pod.uid, pod.num_restarts)
            if key in self._streams or not pod.has_started or not self._options.wants(pod):
                continue
            if sum(stream.is_alive for stream in self._streams.values()) >= MAX_STREAMS:
                self._tell(f"{pod.title} is not followed: {MAX_STREAMS} pods are")
                continue
            self._streams[key] = _Stream(self._cluster, pod, self._options, self._lines, self._is_over)

    def _has_drained(self) -> bool:
        return self._lines.empty() and not any(stream.is_alive for stream in self._streams.values())


class _Stream:
    """The log of one container, on a thread of its own."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        options: LogOptions,
        lines: queue.Queue[Said],
        is_over: threading.Event,
    ) -> None:
        self._cluster = cluster
        self._pod = pod
        self._options = options
        self._lines = lines
        self._is_over = is_over
        self._last = ""
        """Moment of the last line that was told."""
        self._told: set[str] = set()
        """Lines of that very moment."""
        self._thread = threading.Thread(target=self._run, name=f"log of {pod.name}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        since, tail = self._options.since, self._options.tail
        while not self._is_over.is_set():
            try:
                with pod_log(
                    self._cluster,
                    self._pod.name,
                    container=CONTAINER,
                    is_followed=True,
                    since=since,
                    tail=tail,
                ) as lines:
                    for line in lines:
                        self._hear(line)
                        if self._is_over.is_set():
                            return
                if not self._is_still_running():
                    return
            except KubernetesError:
                # A node that has just removed a pod of the same name may not find the new one for a while.
                if not self._is_still_running():
                    return
            # The connection was lost: go on where it broke.
            since, tail = f"{self._last}Z" if self._last else self._options.since, None
            self._is_over.wait(_AGAIN_S)

    def _hear(self, line: LogLine) -> None:
        moment = line.moment
        if moment < self._last or (moment == self._last and line.text in self._told):
            return
        if moment > self._last:
            self._last, self._told = moment, set()
        self._told.add(line.text)
        said = Said(self._pod.name, self._pod.title, line)
        while not self._is_over.is_set():
            try:
                self._lines.put(said, timeout=0.5)
            except queue.Full:
                continue
            return

    def _is_still_running(self) -> bool:
        """Whether this very container may have more to say; an API server that is away leaves that open."""
        try:
            pods = list_pods(
                self._cluster, self._pod.item["metadata"]["labels"]["app.kubernetes.io/instance"]
            )
        except ClickmillError:
            return True
        same = next((pod for pod in pods if pod.uid == self._pod.uid), None)
        return same is not None and same.is_running and same.num_restarts == self._pod.num_restarts
