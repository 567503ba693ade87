"""The file that a trainer will probably need next, brought while it trains."""

from __future__ import annotations

import logging
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from clickmill.errors import ClickmillError
from clickmill.store.remote.store import Cancelled, RemoteFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clickmill.data.files import FileRange
    from clickmill.store.remote.fetching import Fetcher
    from clickmill.train.cluster.units import Unit

logger = logging.getLogger("clickmill.train")


class Prefetcher:
    """Units are leased in the order of a pass: the next of a trainer is as far on as there are trainers."""

    def __init__(self, num_trainers: int, fetcher_of: Callable[[FileRange], Fetcher]) -> None:
        self._num_trainers = num_trainers
        self._fetcher_of = fetcher_of
        self._wanted: SimpleQueue[FileRange | None] = SimpleQueue()
        self._last: RemoteFile | None = None
        self._thread: threading.Thread | None = None
        self._fetcher: Fetcher | None = None
        self._is_closed = False

    def lease(self, units: Sequence[Unit], order: Sequence[int], unit: int) -> None:
        """This trainer has leased `unit`, one of `order`."""
        place = order.index(unit) + self._num_trainers
        if place >= len(order):
            return
        file = units[order[place]].file
        path, here = file.path, units[unit].file.path
        if isinstance(path, RemoteFile) and path not in {here, self._last}:
            self._last = path
            self._start()
            self._wanted.put(file)

    def close(self) -> None:
        """Bring no more."""
        self._is_closed = True
        if self._fetcher is not None:
            self._fetcher.stop.set()
        self._wanted.put(None)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (file := self._wanted.get()) is not None and not self._is_closed:
            assert isinstance(file.path, RemoteFile)
            try:
                self._fetcher = self._fetcher_of(file)
                copy = self._fetcher.hold(file.path, is_needed=False)
            except Cancelled:
                return
            except ClickmillError as error:
                # Whoever needs it will be told.
                logger.debug("prefetch of %s: %s", file.path, error)
                continue
            if copy is not None:
                copy.release()
