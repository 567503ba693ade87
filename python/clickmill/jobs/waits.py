"""Whom a run waits for, without what is over in a moment."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.jobs.moments import seconds_between
from clickmill.jobs.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from clickmill.jobs.job import Job
    from clickmill.jobs.pods import Pod

_BRIEF_S = 10
"""Shorter waits at a fence happen many times a minute."""
_HANGS_S = 60
"""A trainer that does not come to a fence for so long does not just have a large batch."""
_LASTING_S = 3.0


@dataclass(frozen=True, slots=True)
class Wait:
    """As a coordinator tells it, but for its advice: pods are made anew without anybody's help."""

    kind: str
    """`server`, `more_trainers`, `fence` or `other`."""
    member: str | None
    """`pserver 1`, the title of a pod; None where it is for nobody in particular."""
    whom: str
    """The same as long as it lasts."""
    words: str
    for_s: int
    lost_s: int | None
    """Since the server was lost that is waited for."""

    @property
    def is_brief(self) -> bool:
        """Whether it is only the course of things."""
        return self.kind == "fence" and self.for_s < _BRIEF_S

    @property
    def holds_all_up(self) -> bool:
        """Whether all others stand still meanwhile."""
        return self.kind == "fence" and not self.is_brief


def waits_of(status: Mapping[str, Any]) -> list[Wait]:
    """What a coordinator waits for by its status.

    Without trainers that it waits for while those that are here train: it goes on with them in any case.
    """
    is_training = any(trainer["statistics"]["samples_per_s"] for trainer in status["trainers"])
    waits = (
        Wait(**{key: value for key, value in told.items() if key != "advice"}) for told in status["waiting"]
    )
    return [wait for wait in waits if not (is_training and wait.kind == "more_trainers")]


def waiting_reasons(job: Job, pods: Sequence[Pod], waits: Iterable[Wait]) -> Iterator[Reason]:
    """Whom the run waits for, with what ends it where a pod runs that does not do its part."""
    for wait in waits:
        pod = next((pod for pod in pods if pod.title == wait.member), None)
        remedy = None
        if pod is not None and _may_hang(pod, wait):
            command = f"kubectl delete pod {pod.name} -n {job.namespace}"
            remedy = f"its pod runs; if it hangs, `{command}` has it made anew"
        yield Reason("waiting", wait.words, remedy)


def _may_hang(pod: Pod, wait: Wait) -> bool:
    if not pod.is_running or pod.is_leaving:
        return False
    if wait.lost_s is not None:
        # One that is younger has come for the one that was lost.
        return wait.lost_s > _BRIEF_S and seconds_between(pod.created) > wait.lost_s + _BRIEF_S
    return wait.kind == "fence" and wait.for_s >= _HANGS_S


class WaitTeller:
    """Tells a wait once, when it has lasted for some seconds."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def look(self, waits: Iterable[Wait]) -> None:
        """What is waited for now."""
        now = time.monotonic()
        current = {wait.whom: wait.words for wait in waits}
        self._since = {whom: self._since.get(whom, now) for whom in current}
        self._told &= set(current)
        for whom, words in current.items():
            if whom not in self._told and now - self._since[whom] >= _LASTING_S:
                self._told.add(whom)
                self._tell(words)
