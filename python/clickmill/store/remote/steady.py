"""A store that is tried again until it does what it is asked for, and whose lengths are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from clickmill.errors import RemoteError
from clickmill.store.remote.retrying import Attempts
from clickmill.store.remote.store import Unsteady

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from clickmill.store.remote.store import Listing, RemoteFile, RemoteStore
    from clickmill.store.remote.url import Place


T = TypeVar("T")


class SteadyStore:
    """Raises RemoteError where nothing works for as long as our patience lasts; never Unsteady."""

    def __init__(self, store: RemoteStore, stop: threading.Event | None = None) -> None:
        """Once `stop` is set nothing is tried again: Cancelled."""
        self._store = store
        self._stop = stop

    def has_ranges(self, file: RemoteFile) -> bool:
        return self._store.has_ranges(file)

    def find(self, place: Place, *, patience_s: float | None = None) -> RemoteFile | None:
        return self._persist(place, lambda: self._store.find(place), patience_s)

    def list(self, place: Place, wanted: Callable[[str], bool] = lambda _: True) -> Listing | None:
        return self._persist(place, lambda: self._store.list(place, wanted))

    def read(self, file: RemoteFile, start: int, end: int) -> Iterator[bytes]:
        """Exactly these bytes; a connection that breaks is taken up where it broke."""
        attempts = Attempts(file.url, stop=self._stop)
        while start < end:
            try:
                for piece in self._store.read(file, start, end):
                    if len(piece) > end - start:
                        raise RemoteError(f"`{file}`: the store sends more bytes than it was asked for")
                    attempts.succeed()
                    start += len(piece)
                    yield piece
                if start < end:
                    raise Unsteady(f"the store has sent {end - start} bytes too few")
            except Unsteady as error:
                attempts.fail(str(error))

    def read_all(self, file: RemoteFile, *, max_bytes: int) -> bytes:
        """A small file as a whole."""
        if file.num_bytes > max_bytes:
            raise RemoteError(f"`{file}` has {file.num_bytes} bytes; {max_bytes} are allowed here")
        return b"".join(self.read(file, 0, file.num_bytes))

    def upload(self, path: Path, place: Place) -> None:
        """Put a local file there; its length there is looked at, where the store tells it."""
        num_bytes = path.stat().st_size

        def put() -> None:
            self._store.upload(path, place)
            found = self._store.find(place)
            if found is not None and found.num_bytes != num_bytes:
                raise Unsteady(f"{found.num_bytes} bytes have arrived of {num_bytes}")

        self._persist(place, put)

    def remove(self, place: Place) -> None:
        self._persist(place, lambda: self._store.remove(place))

    def _persist(self, place: Place, call: Callable[[], T], patience_s: float | None = None) -> T:
        """What `call` returns, however often it must be called."""
        attempts = Attempts(place.url, patience_s, stop=self._stop)
        while True:
            try:
                return call()
            except Unsteady as error:
                attempts.fail(str(error))
