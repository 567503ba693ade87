"""Whom a run waits for, without what is over in a moment."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ROUTINE = re.compile(r"to come to fence \d+; gives up in (\d+) s")
_FENCE_DEADLINE_S = 600
"""How long a coordinator waits for trainers at a fence."""
_BRIEF_S = 10
_LASTING_S = 3.0


def lasting(waits: Iterable[str]) -> tuple[str, ...]:
    """Without trainers that have only just been asked to a fence, which happens many times a minute."""
    return tuple(words for words in waits if not _is_brief(words))


def _is_brief(words: str) -> bool:
    found = _ROUTINE.search(words)
    return found is not None and int(found[1]) > _FENCE_DEADLINE_S - _BRIEF_S


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
