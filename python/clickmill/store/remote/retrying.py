"""Trying again: with growing pauses, until nothing has come of it for too long."""

from __future__ import annotations

import logging
import os
import random
import threading
import time

from clickmill.errors import ConfigError, RemoteError
from clickmill.store.remote.store import Cancelled
from clickmill.store.remote.url import shown

logger = logging.getLogger(__name__)

PATIENCE = "CLICKMILL_REMOTE_PATIENCE_S"
"""Variable: seconds without any success after which a store is given up."""
_DEFAULT_PATIENCE_S = 120.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0


def patience_s() -> float:
    """As the environment says."""
    text = os.environ.get(PATIENCE, "")
    if not text:
        return _DEFAULT_PATIENCE_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise ConfigError(f"{PATIENCE} is `{text}`; it must be a number of seconds")
    return seconds


class Attempts:
    """The tries of one undertaking; whatever gets on begins the patience anew."""

    def __init__(
        self, url: str, seconds: float | None = None, *, stop: threading.Event | None = None
    ) -> None:
        self._url = url
        self._stop = stop or threading.Event()
        self._seconds = patience_s() if seconds is None else seconds
        self.succeed()

    def succeed(self) -> None:
        """Something has come of it."""
        self._since: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    def fail(self, reason: str) -> None:
        """Nothing has: pause before the next try. RemoteError where it was enough, Cancelled when told so."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        left = self._since + self._seconds - now
        if left <= 0:
            raise RemoteError(
                f"`{shown(self._url)}`: {reason}",
                hint=f"it was tried for {self._seconds:g} seconds ({PATIENCE}); "
                "is the store up, and does this machine reach it?",
            )
        # Several that wait for the same store must not come back at the same moment.
        pause = min(self._pause_s * random.uniform(0.5, 1.0), left)
        logger.warning(
            "remote.retries url=%s reason=%s pause=%.1f left=%.0f", shown(self._url), reason, pause, left
        )
        if self._stop.wait(pause):
            raise Cancelled
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
