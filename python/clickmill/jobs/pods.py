"""Pods of a job as people ask for them: who, where, how it is, what it said when it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.jobs.exit_codes import code_words
from clickmill.jobs.job import role_of
from clickmill.kube import kinds
from clickmill.launch.failure import told_error
from clickmill.submit.kubernetes.names import INSTANCE_LABEL, NAME_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clickmill.jobs.job import Job
    from clickmill.kube.client import Cluster, Object

CONTAINER = "clickmill"
READER = "reader"
_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
_NO_CODE = -1
_STARTING = frozenset({"ContainerCreating", "PodInitializing", ""})
_ROLES = ("pserver", "trainer", "worker")
_OF_A_LOG = frozenset({"Error", "OOMKilled"})
"""Reasons with which a kubelet gives the end of the log for last words, where a process has left none."""
_ROUTINE = re.compile(r" - (?:DEBUG|INFO) - ")
_TELLING = re.compile(
    r"^\S+ \S+ - (?:ERROR|CRITICAL) - (?P<logged>.+)"
    r"|^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b(?!\()"
    r"|^Fatal Python error: |^thread '.*' panicked at "
)
"""Lines of a log that say why a process ended; of a traceback the last one."""
_MAX_CHARACTERS = 200
"""Of what is taken from a log: it stands in a table."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container ended."""

    code: int
    reason: str
    """The kubelet's word: `Error`, `OOMKilled`, `Completed`."""
    message: str
    """What the process left behind: its error, or what its log has of one."""
    finished: str
    hint: str | None = None

    @property
    def manner(self) -> str:
        """`ended with exit code 3, samples that cannot be read`."""
        return code_words(self.code, self.reason)

    @property
    def words(self) -> str:
        """The same, with its message."""
        return f"{self.manner}: {self.message}" if self.message else self.manner


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod at one moment."""

    name: str
    uid: str
    role: str
    index: int | None
    node: str | None
    state: str
    """`Running`, `Pending`, `Succeeded`, `Failed`, `Terminating`, or what keeps it: `ImagePullBackOff`."""
    detail: str
    """The cluster's words about that state."""
    is_ready: bool
    num_restarts: int
    created: str
    ending: Ending | None
    """Of its container as it is; None while that runs or has not begun."""
    last_ending: Ending | None
    """Of the container before, where it was started again."""
    item: Object

    @property
    def title(self) -> str:
        """`trainer 0`."""
        return self.role if self.index is None else f"{self.role} {self.index}"

    @property
    def has_started(self) -> bool:
        """It has written a log, or may have."""
        return self.ending is not None or self.is_running

    @property
    def is_running(self) -> bool:
        """Its container runs."""
        return "running" in _container_state(self.item)

    @property
    def is_leaving(self) -> bool:
        """It is being removed, though it may run still."""
        return "deletionTimestamp" in self.item["metadata"]

    @property
    def is_unscheduled(self) -> bool:
        """It waits for a node."""
        return self.node is None and self.state == "Pending"


def list_pods(cluster: Cluster, job: str) -> list[Pod]:
    """Pods of a job in the order of roles and numbers, the newest of a number first."""
    found = cluster.list(kinds.POD, labels={NAME_LABEL: "clickmill", INSTANCE_LABEL: job})
    return in_order(pod_of(item) for item in found if role_of(item) != READER)


def in_order(pods: Iterable[Pod]) -> list[Pod]:
    """By role and number; of several with one number, the newest first."""
    newest = sorted(pods, key=lambda pod: pod.created, reverse=True)
    rank = {role: place for place, role in enumerate(_ROLES)}
    return sorted(
        newest,
        key=lambda pod: (rank.get(pod.role, len(rank)), -1 if pod.index is None else pod.index),
    )


def current(pods: Iterable[Pod]) -> list[Pod]:
    """Without those in whose place there is another one: of an Indexed Job, failed ones stay."""
    seen: set[tuple[str, int | None]] = set()
    found = []
    for pod in in_order(pods):
        if (pod.role, pod.index) not in seen:
            seen.add((pod.role, pod.index))
            found.append(pod)
    return found


def is_trained(pods: Iterable[Pod]) -> bool:
    """Whether pserver 0 has ended well, or all trainers: neither does before the run is over."""
    ends = {(pod.role, pod.index): pod.ending is not None and pod.ending.code == 0 for pod in pods}
    trainers = [has_ended for (role, _), has_ended in ends.items() if role == "trainer"]
    return ends.get(("pserver", 0), False) or (bool(trainers) and all(trainers))


def pod_of(item: Object) -> Pod:
    """A pod, from what the API server says of it."""
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    container = _container(item)
    state, detail = _state(item)
    ended = (container.get("state") or {}).get("terminated")
    before = (container.get("lastState") or {}).get("terminated")
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        role=role_of(item) or "pod",
        index=_index(metadata),
        node=spec.get("nodeName"),
        state=state,
        detail=_one_line(detail),
        is_ready=conditions.get("Ready", {}).get("status") == "True",
        num_restarts=container.get("restartCount", 0),
        created=metadata["creationTimestamp"],
        ending=_ending(ended) if ended else None,
        last_ending=_ending(before) if before else None,
        item=item,
    )


def _container(item: Object) -> dict[str, Any]:
    statuses = (item.get("status") or {}).get("containerStatuses") or []
    for each in statuses:
        if each["name"] == CONTAINER:
            return dict(each)
    return dict(statuses[0]) if statuses else {}


def _container_state(item: Object) -> dict[str, Any]:
    return dict(_container(item).get("state") or {})


def _state(item: Object) -> tuple[str, str]:
    status = item.get("status") or {}
    phase = status.get("phase") or "Unknown"
    if item["metadata"].get("deletionTimestamp"):
        lost = status.get("reason") == "NodeLost"
        return "Terminating", "its node does not answer" if lost else ""
    if phase in {"Succeeded", "Failed"}:
        return status.get("reason") or phase, status.get("message") or ""
    return _unfinished(item, status, phase)


def _unfinished(item: Object, status: Object, phase: str) -> tuple[str, str]:
    state = _container_state(item)
    waiting = state.get("waiting") or {}
    if waiting.get("reason", "") not in _STARTING:
        return waiting["reason"], waiting.get("message") or ""
    if "terminated" in state:
        return state["terminated"].get("reason") or "Terminated", ""
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return "Pending", scheduled.get("message") or ""
    if phase == "Pending" and item["spec"].get("nodeName"):
        return "Starting", ""
    return phase, ""


def _ending(ended: Object) -> Ending:
    return ending_of(
        ended.get("exitCode", 0),
        ended.get("reason") or "",
        ended.get("message") or "",
        ended.get("finishedAt") or "",
    )


def ending_of(code: int | None, reason: str, text: str, finished: str) -> Ending:
    """An ending with the error in its last words; without a code, one that the cluster brought about."""
    message, hint = _last_words(text, is_of_log=reason in _OF_A_LOG)
    return Ending(_NO_CODE if code is None else code, reason, message, finished, hint)


def _last_words(text: str, *, is_of_log: bool) -> tuple[str, str | None]:
    """The error in a termination message, with its hint: told as JSON, as `error: ...`, or by a log's end.

    A launcher that is killed leaves nothing, and the end of its log is mostly of work that went well.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines):
        told = told_error(line)
        if told is not None:
            return str(told["message"]), told.get("hint")
    lines = [line for line in lines if not _ROUTINE.search(line)]
    errors = [place for place, line in enumerate(lines) if line.startswith("error: ")]
    if errors:
        lines = lines[errors[-1] :]
    elif is_of_log:
        return _told_by_log(lines), None
    hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
    said = [line for line in lines if not line.startswith("hint: ")]
    return _one_line(" ".join(said).removeprefix("error: ")), hints[0] if hints else None


def _told_by_log(lines: Sequence[str]) -> str:
    """The last line that says why a process ended; empty where none does."""
    for line in reversed(lines):
        found = _TELLING.match(line)
        if found:
            words = _one_line(found["logged"] or line)
            return words if len(words) <= _MAX_CHARACTERS else f"{words[: _MAX_CHARACTERS - 3]}..."
    return ""


def _index(metadata: Object) -> int | None:
    for place in ("labels", "annotations"):
        text = (metadata.get(place) or {}).get(_INDEX_LABEL)
        if text is not None:
            return int(text)
    found = re.search(r"-(\d+)$", metadata["name"])
    return int(found[1]) if found else None


def _one_line(text: str) -> str:
    return " ".join(text.split())


def number_of_tries(job: Job) -> str:
    """`started again 2 times, of 5 allowed`; empty where it never was."""
    if not job.num_retries:
        return ""
    times = "once" if job.num_retries == 1 else f"{job.num_retries} times"
    if job.max_retries is None:
        return f"started again {times}"
    if job.num_retries > job.max_retries:
        # The failure after the last restart counts as well, and so do pods that fail together.
        return f"started again {times}, more than the {job.max_retries} that are allowed"
    return f"started again {times}, of {job.max_retries} allowed"
