"""Why a job has failed, or keeps failing, in the words of the pod that failed first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clickmill.errors import ForbiddenError
from clickmill.jobs.exit_codes import FINAL_CODES
from clickmill.jobs.pods import Ending, ending_of, number_of_tries
from clickmill.jobs.reasons import Reason
from clickmill.kube import kinds
from clickmill.launch.pod.tries import UNTOLD
from clickmill.launch.pod.verdict import GAVE_UP
from clickmill.launch.pod.witness import failures_name, read_failures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.jobs.job import Job
    from clickmill.jobs.pods import Pod
    from clickmill.kube.client import Cluster

_OUT_OF_MEMORY = "OOMKilled"
_AGAIN = "submit with `--replace`; it goes on from the last snapshot"
_ASKED = frozenset({130, 143})
"""Of processes that were told to end: those are never why a job failed."""


@dataclass(frozen=True, slots=True)
class BadEnd:
    """A pod that did not end well, and may be gone by now."""

    pod: str
    title: str
    """`trainer 0`."""
    ending: Ending
    is_there: bool = True
    """The pod, and with it its log."""

    @property
    def is_untold(self) -> bool:
        """It has given up without knowing why others failed."""
        return self.ending.message.startswith(UNTOLD)

    @property
    def role(self) -> str:
        return self.title.partition(" ")[0]

    @property
    def words(self) -> str:
        """`trainer 0 ended with exit code 3, samples that cannot be read: ...`."""
        # A launcher names its role in its last words, too, as a sentence of its own or before what was told.
        message = self.ending.message.removeprefix(f"{self.title}: ")
        if message.startswith(f"{self.title} "):
            return message
        return f"{self.title} {self.ending.manner}{f': {message}' if message else ''}"


def bad_ends(cluster: Cluster, job: Job, pods: Sequence[Pod]) -> list[BadEnd]:
    """Of pods that are there, and of those that others saw fail; the oldest first."""
    found = {
        (pod.name, ending.finished): BadEnd(pod.name, pod.title, ending)
        for pod in pods
        for ending in (pod.ending, pod.last_ending)
        if ending and ending.code
    }
    try:
        written = read_failures(cluster.get(kinds.CONFIG_MAP, failures_name(job.name)))
    except ForbiddenError:
        written = []
    for failure in written:
        # An earlier job may have had the same name.
        if failure.finished >= job.created:
            ending = ending_of(failure.exit_code, failure.reason, failure.message, failure.finished)
            gone = BadEnd(failure.pod, failure.title, ending, is_there=False)
            found.setdefault((failure.pod, failure.finished), gone)
    return _with_causes(sorted(found.values(), key=lambda each: each.ending.finished))


def _with_causes(ends: Sequence[BadEnd]) -> list[BadEnd]:
    """With what others saw, where a pod gave up without knowing why those before it failed."""
    cause = _last_known(ends)
    if cause is None:
        return list(ends)
    return [_with_cause(end, cause) if end.is_untold else end for end in ends]


def _with_cause(end: BadEnd, cause: BadEnd) -> BadEnd:
    words = f"{end.ending.message.partition(';')[0]}; the last failure that is known: {cause.words}"
    return replace(end, ending=replace(end.ending, message=words, hint=cause.ending.hint))


def pods_with_causes(pods: Sequence[Pod], ends: Sequence[BadEnd]) -> list[Pod]:
    """Pods that end in the words of `ends`, which know more than a pod does that gave up."""
    known = {(end.pod, end.ending.finished): end.ending for end in ends}
    return [
        replace(pod, ending=known.get((pod.name, pod.ending.finished), pod.ending)) if pod.ending else pod
        for pod in pods
    ]


def failure_reasons(job: Job, ends: Sequence[BadEnd]) -> list[Reason]:
    """Of a job that has failed why; of one that goes on, which pods have failed and were started again."""
    if job.phase == "Failed":
        return [_final(job, ends)]
    return _crashes(job, ends)


def failure_code(ends: Sequence[BadEnd]) -> int:
    """The exit code that a job which has failed has by its pods: 2, 3 and 4 mean what they mean elsewhere."""
    final = [end.ending.code for end in ends if end.ending.code in FINAL_CODES]
    return min(final, default=1)


def _weightiest(ends: Sequence[BadEnd]) -> BadEnd | None:
    """The one that says most about why the job failed."""
    first = next((end for end in ends if end.ending.code in FINAL_CODES - {GAVE_UP}), None)
    if first is not None:
        return first
    # Of tries that were made again and again, the last one that knew what to say.
    return _last_known(ends) or (ends[-1] if ends else None)


def _last_known(ends: Sequence[BadEnd]) -> BadEnd | None:
    known = [end for end in ends if end.ending.code not in _ASKED and not end.is_untold]
    telling = [end for end in known if end.ending.message or end.ending.reason == _OUT_OF_MEMORY]
    return next(reversed(telling or known), None)


def _final(job: Job, ends: Sequence[BadEnd]) -> Reason:
    tries = number_of_tries(job)
    told = f"; {tries}" if tries else ""
    end = _weightiest(ends)
    if end is None:
        why = job.message or "its pods are gone, and with them what they said"
        return Reason("failure", f"{why}{told}", _AGAIN)
    return Reason("failure", f"{end.words}{told}", _remedy(job, end))


def _crashes(job: Job, ends: Sequence[BadEnd]) -> list[Reason]:
    by_title: dict[str, list[BadEnd]] = {}
    for end in ends:
        if end.ending.code not in _ASKED:
            by_title.setdefault(end.title, []).append(end)
    found = []
    for title, those in by_title.items():
        last, times = those[-1], "once" if len(those) == 1 else f"{len(those)} times"
        limit = "" if job.max_retries is None else f"; the job gives up after {job.max_retries} restarts"
        words = f"{title} has failed {times}: it{last.words.removeprefix(title)}{limit}"
        found.append(Reason("crash", words, _remedy(job, last)))
    if not found and job.num_retries and job.phase != "Completed":
        found.append(Reason("crash", f"pods have failed: {number_of_tries(job)}", _logs(job)))
    return found


def _remedy(job: Job, end: BadEnd) -> str:
    if end.ending.reason == _OUT_OF_MEMORY or "ran out of memory" in end.ending.message:
        return f"give it more: `kubernetes.resources.{end.role}.memory_limit`; {_AGAIN}"
    if end.ending.hint:
        return end.ending.hint
    if end.ending.code in FINAL_CODES and not end.is_untold:
        return f"mend that, then {_AGAIN}"
    return _logs(job, end.role) if end.is_there or not job.is_volcano else _no_log(job)


def _logs(job: Job, role: str = "") -> str:
    options = f" --role {role}" if role else ""
    return f"`clickmill job logs {job.name}{options} -n {job.namespace}` may have what led to it"


def _no_log(job: Job) -> str:
    """Of a pod that Volcano has removed."""
    if job.phase != "Failed":
        return (
            "its log went with its pod; "
            f"`clickmill job logs {job.name} --follow -n {job.namespace}` shows it if it fails again"
        )
    book = f"`kubectl get configmap {failures_name(job.name)} -n {job.namespace} -o yaml`"
    return f"its log went with its pod; {book} has the last words of each pod that failed"
