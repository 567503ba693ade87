"""What those who watch are told of transfers: log lines, and whatever else asks for it, such as a bar."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from types import TracebackType

logger = logging.getLogger(__name__)

_WORTH_TELLING_BYTES = 16 << 20
"""A file of this size is told of when it begins, too."""


class Watcher(Protocol):
    """Hears of every transfer, on the threads that do it."""

    def begin(self, number: int, words: str, num_bytes: int) -> None:
        """A transfer begins; `number` is its own."""

    def advance(self, number: int, num_bytes: int) -> None:
        """So many bytes more."""

    def end(self, number: int) -> None:
        """It is over, however it ended."""


_watchers: list[Watcher] = []
_lock = threading.Lock()
_last = 0


def watch(watcher: Watcher) -> None:
    """Tell `watcher`, too, from now on."""
    with _lock:
        _watchers.append(watcher)


def unwatch(watcher: Watcher) -> None:
    """Tell it no more; nothing where it was not told."""
    with _lock:
        if watcher in _watchers:
            _watchers.remove(watcher)


class Transfer:
    """One file, or several at once, on their way; `verb` is `downloaded` or `uploaded`."""

    def __init__(self, verb: str, what: object, num_bytes: int) -> None:
        global _last  # noqa: PLW0603 - numbers of transfers are of the process
        self._verb = verb
        self._what = str(what)
        self._num_bytes = num_bytes
        with _lock:
            _last += 1
            self._number = _last
            self._told = list(_watchers)

    def __enter__(self) -> Transfer:
        self._started = time.monotonic()
        if self._num_bytes >= _WORTH_TELLING_BYTES:
            logger.info("remote.%s url=%s bytes=%d", f"{self._verb[:-2]}ing", self._what, self._num_bytes)
        name = self._what.rstrip("/").rpartition("/")[2]
        for watcher in self._told:
            watcher.begin(self._number, f"{self._verb[:-2]} {name}", self._num_bytes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watcher in self._told:
            watcher.end(self._number)
        if error is None:
            seconds = time.monotonic() - self._started
            logger.info(
                "remote.%s url=%s bytes=%d seconds=%.2f", self._verb, self._what, self._num_bytes, seconds
            )

    def advance(self, num_bytes: int) -> None:
        """So many bytes more have arrived."""
        for watcher in self._told:
            watcher.advance(self._number, num_bytes)
