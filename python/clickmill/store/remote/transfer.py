"""Bringing a file here: room for it first, then its parts side by side, then a look at its length."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from clickmill.errors import RemoteError
from clickmill.store import durable
from clickmill.store.remote.opening import open_store
from clickmill.store.remote.store import Cancelled
from clickmill.store.remote.watching import Transfer

if TYPE_CHECKING:
    from pathlib import Path

    from clickmill.store.remote.steady import SteadyStore
    from clickmill.store.remote.store import RemoteFile

_PART_BYTES = 16 << 20
_PARTS_AT_ONCE = 4
_UNABLE = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
"""What file systems say that cannot take room beforehand."""


def download(file: RemoteFile, path: Path, *, stop: threading.Event | None = None) -> None:
    """Write a file elsewhere to `path`, durably; whoever calls sees to it that nobody reads it before.

    Raises StorageError where there is no room, DataError where the file is not what it was when it was found,
    RemoteError where the store fails, and Cancelled when `stop` is set.
    """
    stop = stop or threading.Event()
    store = open_store(file.place, stop=stop)
    with Transfer("downloaded", file, file.num_bytes) as transfer:
        with durable.writing(path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            if file.num_bytes:
                # A disk that is too small says so now, and not behind most of the way.
                with durable.writing(path):
                    _take_room(descriptor, file.num_bytes)
                _Filling(file, path, descriptor, transfer, stop).run(store)
            with durable.writing(path):
                os.fsync(descriptor)
            found = os.fstat(descriptor).st_size
            if found != file.num_bytes:
                raise RemoteError(f"`{file}`: {found} bytes have been written, not {file.num_bytes}")
        finally:
            os.close(descriptor)


def _take_room(descriptor: int, num_bytes: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, num_bytes)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        os.ftruncate(descriptor, num_bytes)


class _Filling:
    """The parts of one file, on their way into it."""

    def __init__(
        self, file: RemoteFile, path: Path, descriptor: int, transfer: Transfer, stop: threading.Event
    ) -> None:
        self._file = file
        self._path = path
        self._descriptor = descriptor
        self._transfer = transfer
        self._stop = stop
        self._has_failed = threading.Event()

    def run(self, store: SteadyStore) -> None:
        num_bytes = self._file.num_bytes
        part_bytes = _PART_BYTES if store.has_ranges(self._file) else num_bytes
        parts = [(start, min(start + part_bytes, num_bytes)) for start in range(0, num_bytes, part_bytes)]
        if len(parts) == 1:
            self._fetch(store, *parts[0])
            return
        with ThreadPoolExecutor(min(_PARTS_AT_ONCE, len(parts)), thread_name_prefix="download") as pool:
            fetches = [pool.submit(self._fetch, store, *part) for part in parts]
            try:
                errors = [fetch.exception() for fetch in fetches]
            except BaseException:
                # A signal: those that are still under way are not waited for to their ends.
                self._has_failed.set()
                raise
        failures = [error for error in errors if error is not None]
        # Those that gave up because another failed have nothing to tell.
        for error in sorted(failures, key=lambda each: isinstance(each, Cancelled)):
            raise error

    def _check(self) -> None:
        if self._stop.is_set() or self._has_failed.is_set():
            raise Cancelled

    def _fetch(self, store: SteadyStore, at: int, end: int) -> None:
        try:
            self._check()
            for piece in store.read(self._file, at, end):
                self._check()
                left = memoryview(piece)
                while left:
                    with durable.writing(self._path):
                        written = os.pwrite(self._descriptor, left, at)
                    at, left = at + written, left[written:]
                self._transfer.advance(len(piece))
        except BaseException:
            self._has_failed.set()
            raise
