"""Local copies of files elsewhere, from the cache of this host."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from clickmill.errors import RemoteError
from clickmill.store.remote.cache import Cache, Held
from clickmill.store.remote.opening import open_store
from clickmill.store.remote.store import Cancelled, changed
from clickmill.store.remote.transfer import download

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from clickmill.store.remote.store import RemoteFile

logger = logging.getLogger(__name__)

_LOOK_PATIENCE_S = 10.0
"""For a look at a file of which there is a copy: without an answer, the copy is what was found."""


class Fetcher:
    """Brings files here; `stop` ends what is under way."""

    def __init__(
        self,
        cache: Cache | None = None,
        *,
        companions: Mapping[RemoteFile, Sequence[RemoteFile]] | None = None,
    ) -> None:
        """`companions` of a file are brought with it, and lie beside its copy."""
        self.cache = cache or Cache.of_environment()
        self._companions = companions or {}
        self.stop = threading.Event()

    def path_of(self, file: RemoteFile) -> Path:
        """Where its copy lies while it is held."""
        return self.cache.path_of(self._key(file)) / file.name

    def _together(self, file: RemoteFile) -> list[RemoteFile]:
        return [file, *self._companions.get(file, ())]

    def _key(self, file: RemoteFile) -> str:
        return "\n".join(f"{each.url}\n{each.version}\n{each.num_bytes}" for each in self._together(file))

    def _fill(self, file: RemoteFile, folder: Path) -> None:
        for each in self._together(file):
            download(each, folder / each.name, stop=self.stop)

    def hold(
        self, file: RemoteFile, *, is_needed: bool = True, while_waiting: Callable[[], None] = lambda: None
    ) -> Held | None:
        """A copy, made if need be; None where it is not `is_needed` and there is no room.

        Raises Cancelled once `stop` is set, and DataError where the file has changed since it was found.
        """
        found = self.cache.hold(
            self._key(file),
            sum(each.num_bytes for each in self._together(file)),
            lambda folder: self._fill(file, folder),
            is_needed=is_needed,
            while_waiting=lambda: self._wait(while_waiting),
        )
        if found is None:
            return None
        held, was_there = found
        if was_there:
            try:
                for each in self._together(file):
                    self._check(each)
            except BaseException:
                held.release()
                raise
        return held

    def _wait(self, while_waiting: Callable[[], None]) -> None:
        if self.stop.is_set():
            raise Cancelled
        while_waiting()

    def _check(self, file: RemoteFile) -> None:
        """Look whether a file still is what it was, of which there is a copy."""
        store = open_store(file.place, stop=self.stop)
        try:
            now = store.find(file.place, patience_s=_LOOK_PATIENCE_S)
        except RemoteError as error:
            logger.warning("remote.unchecked url=%s copy=used reason=%s", file, error)
            return
        if now != file:
            raise changed(file, "it is gone" if now is None else "it is longer, shorter or later")
