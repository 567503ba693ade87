"""Whom a run waits for, without what is over in a moment."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from clickmill.jobs.moments import seconds_between
from clickmill.jobs.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from clickmill.jobs.job import Job
    from clickmill.jobs.pods import Pod

_AT_FENCE = re.compile(r"to come to fence \d+; gives up in (\d+) s")
_FENCE_DEADLINE_S = 600
"""How long a coordinator waits for trainers at a fence."""
_BRIEF_S = 10
_HANGS_S = 60
"""A trainer that does not come to a fence for so long does not just have a large batch."""
_LASTING_S = 3.0
_STARTS_ONE = re.compile(r"; `clickmill pserver [^`]*` starts one that takes this place, on any host")
"""Advice of the coordinator, which does not know that pods are made anew without anybody's help."""
_NUMBERED = re.compile(r"\btrainer \d+ \(([^()]+)\)")
"""The coordinator counts trainers as they come; people know them by their names."""
_MORE_TRAINERS = "waiting for more trainers; "
_MEMBER = re.compile(r"waiting for ((?:pserver|trainer) \d+)\b")
_LOST = re.compile(r", lost (\d+) s ago")


def waits_of(status: Mapping[str, Any]) -> list[str]:
    """What a coordinator waits for by its status, in words for those who look after a job.

    Without trainers that it waits for while those that are here train: it goes on with them in any case.
    """
    is_training = any(trainer["statistics"]["samples_per_s"] for trainer in status["trainers"])
    return [
        _plain(words) for words in status["waiting"] if not (is_training and words.startswith(_MORE_TRAINERS))
    ]


def _plain(words: str) -> str:
    words = _NUMBERED.sub(r"\1", _STARTS_ONE.sub("", words))
    if words.startswith(_MORE_TRAINERS):
        return words.replace("; gives up in ", "; goes on with those in ")
    return words


def lasting(waits: Iterable[str]) -> tuple[str, ...]:
    """Without trainers that have only just been asked to a fence, which happens many times a minute."""
    return tuple(words for words in waits if not _is_asked_within(words, _BRIEF_S))


def _is_asked_within(words: str, seconds: int) -> bool:
    found = _AT_FENCE.search(words)
    return found is not None and int(found[1]) > _FENCE_DEADLINE_S - seconds


def is_at_fence(words: str) -> bool:
    """Whether all others stand still for the one who is waited for."""
    return _AT_FENCE.search(words) is not None


def waiting_reasons(job: Job, pods: Sequence[Pod], waits: Iterable[str]) -> Iterator[Reason]:
    """Whom the run waits for, with what ends it where a pod runs that does not do its part."""
    for words in waits:
        found = _MEMBER.match(words)
        pod = next((pod for pod in pods if found and pod.title == found[1]), None)
        remedy = None
        if pod is not None and _may_hang(pod, words):
            command = f"kubectl delete pod {pod.name} -n {job.namespace}"
            remedy = f"its pod runs; if it hangs, `{command}` has it made anew"
        yield Reason("waiting", words, remedy)


def _may_hang(pod: Pod, words: str) -> bool:
    if not pod.is_running or pod.is_leaving:
        return False
    lost = _LOST.search(words)
    if lost is not None:
        # One that is younger has come for the one that was lost.
        return int(lost[1]) > _BRIEF_S and seconds_between(pod.created) > int(lost[1]) + _BRIEF_S
    return is_at_fence(words) and not _is_asked_within(words, _HANGS_S)


class WaitTeller:
    """Tells a wait once, when it has lasted for some seconds."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def look(self, waits: Iterable[str]) -> None:
        """What is waited for now."""
        now = time.monotonic()
        current = {_whom(words): words for words in waits}
        self._since = {whom: self._since.get(whom, now) for whom in current}
        self._told &= set(current)
        for whom, words in current.items():
            if whom not in self._told and now - self._since[whom] >= _LASTING_S:
                self._told.add(whom)
                self._tell(words)


def _whom(words: str) -> str:
    """Without what changes from second to second."""
    return re.split(r"; (?:gives up|goes on) |, lost ", words, maxsplit=1)[0]
