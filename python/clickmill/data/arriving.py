"""Files elsewhere, read as if they were here: brought one after the other, the next while one is read."""

from __future__ import annotations

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from clickmill._core import Arrivals, Reader
from clickmill.errors import DataError
from clickmill.store.remote.fetching import Fetcher
from clickmill.store.remote.reading import heads_of
from clickmill.store.remote.store import Cancelled, RemoteFile

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from clickmill._core import Batch
    from clickmill.data.files import FilePath, FileRange
    from clickmill.store.remote.cache import Held

T = TypeVar("T")

_LARGE_BYTES = 64 << 20
"""Of files of this size one is brought ahead, of smaller ones several: each takes a way there and back."""
_SEVERAL = 4
_CLOSE_S = 5.0


class Arriving:
    """The files of one reading, on their way."""

    def __init__(self, files: Sequence[FileRange], fetcher: Fetcher) -> None:
        self._files = files
        self._fetcher = fetcher
        self.arrivals = Arrivals(len(files))
        self._held: dict[int, Held] = {}
        self._errors: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        self._first = threading.Event()
        self._ahead = self._how_many()
        self._threads = [
            threading.Thread(target=self._bring, name=f"bring-{number}", daemon=True)
            for number in range(self._ahead)
        ]
        for thread in self._threads:
            thread.start()

    def _how_many(self) -> int:
        """Files to bring ahead. One where the cache is small: what comes later must not take its room."""
        sizes = [file.path.num_bytes for file in self._files if isinstance(file.path, RemoteFile)]
        room = self._fetcher.cache.max_bytes
        is_tight = room is not None and max(sizes) * (_SEVERAL + 1) > room
        return 1 if is_tight or sum(sizes) >= _LARGE_BYTES * len(sizes) else _SEVERAL

    def to_json(self) -> list[dict[str, Any]]:
        """The files as the native reader takes them: where they will be, and what it must know before."""
        remote = [file.path for file in self._files if isinstance(file.path, RemoteFile)]
        heads = dict(zip(remote, heads_of(remote), strict=True))
        return [
            {
                **file.to_json(),
                "path": str(self._fetcher.path_of(file.path)),
                "facts": {"bytes": file.path.num_bytes, "head": list(heads[file.path])},
            }
            if isinstance(file.path, RemoteFile)
            else file.to_json()
            for file in self._files
        ]

    def named(self, text: str) -> str:
        """`text` of the reader, with the names that people know for those of the copies."""
        for file in self._files:
            if isinstance(file.path, RemoteFile):
                text = text.replace(str(self._fetcher.path_of(file.path)), str(file.path))
        return text

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Around what the reader does: where a file did not come, the cause is raised."""
        try:
            yield
        except DataError as error:
            with self._lock:
                causes = list(self._errors.values())
            for cause in causes:
                if str(cause) in str(error):
                    raise cause from error
            renamed = self.named(str(error))
            if renamed == str(error):
                raise
            raise type(error)(renamed, hint=error.hint) from error

    def wait_for_first(self) -> None:
        """Wait until a file has come, or cannot; signals end this wait, wherever the reader itself waits."""
        self._first.wait()

    def close(self) -> None:
        """Bring no more, and let go of what was brought."""
        self._fetcher.stop.set()
        self.arrivals.close()
        for thread in self._threads:
            # One that waits for a store that does not answer ends with the process.
            thread.join(_CLOSE_S)
        with self._lock:
            for held in self._held.values():
                held.release()
            self._held.clear()

    def _bring(self) -> None:
        while (place := self.arrivals.take(self._ahead)) is not None:
            self._release_finished()
            try:
                self._hold(place)
            except Cancelled:
                return
            except BaseException as error:  # noqa: BLE001 - told when the reader comes to the file
                with self._lock:
                    self._errors[place] = error
                self.arrivals.fail(place, str(error))
            else:
                self.arrivals.arrive(place)
            self._first.set()

    def _hold(self, place: int) -> None:
        file = self._files[place].path
        if not isinstance(file, RemoteFile):
            return
        held = self._fetcher.hold(file, is_needed=False)
        if held is None:
            # No room for what comes next: when it is its turn, those before have made some.
            if not self.arrivals.wait_until_asked(place):
                raise Cancelled
            held = self._fetcher.hold(file, while_waiting=self._release_finished)
            assert held is not None
        with self._lock:
            if not self._fetcher.stop.is_set():
                self._held[place] = held
                return
        held.release()
        raise Cancelled

    def _release_finished(self) -> None:
        for place in self.arrivals.take_finished():
            with self._lock:
                held = self._held.pop(place, None)
            if held is not None:
                held.release()


class ArrivingReader:
    """Batches of text files of which some are elsewhere; the same as if all were here."""

    def __init__(
        self, arriving: Arriving, open_reader: Callable[[Arrivals], Reader], *, is_here: bool = False
    ) -> None:
        """`is_here`: return only when the first file is."""
        self._arriving = arriving
        try:
            with arriving.told():
                self._reader = beside(lambda: open_reader(arriving.arrivals))
            if is_here:
                arriving.wait_for_first()
        except BaseException:
            arriving.close()
            raise

    def next(self) -> Batch | None:
        """The next batch, waiting for the file that it is in; None at the end."""
        with self._arriving.told():
            return self._reader.next()

    def absent_slots(self) -> list[str]:
        """Slots that have not occurred so far."""
        return self._reader.absent_slots()

    def progress(self) -> tuple[int, int]:
        """Bytes read and bytes in all."""
        return self._reader.progress()

    def bad_lines(self) -> str:
        """JSON: lines that were skipped, under the names that people know."""
        log = json.loads(self._reader.bad_lines())
        for line in log["first"]:
            line["file"] = self._arriving.named(line["file"])
        return json.dumps(log)

    def abandon(self) -> None:
        """End the wait for a file, on whatever thread; `next` fails from now on."""
        self._arriving.arrivals.close()

    def close(self) -> None:
        """Stop reading, and let go of the copies."""
        # First the waits: whoever is in `next` holds the reader.
        self.abandon()
        self._reader.close()
        self._arriving.close()


def bring_all(files: Sequence[FilePath]) -> tuple[list[Path], list[Held]]:
    """All files as local ones, for code that opens them as it likes; those held are to be released."""
    fetcher = Fetcher()
    held: list[Held] = []

    def bring(file: FilePath) -> Path:
        if not isinstance(file, RemoteFile):
            return file
        copy = fetcher.hold(file)
        assert copy is not None
        held.append(copy)
        return copy.path / file.name

    pool = ThreadPoolExecutor(_SEVERAL, thread_name_prefix="bring")
    try:
        return list(pool.map(bring, files)), held
    except BaseException:
        fetcher.stop.set()
        pool.shutdown(cancel_futures=True)
        for copy in held:
            copy.release()
        raise
    finally:
        pool.shutdown()


def bring_in_turn(files: Sequence[FilePath]) -> Generator[Path]:
    """Files as local ones, each until the next is asked for, which is brought meanwhile."""
    fetcher = Fetcher()

    def bring_ahead(place: int) -> None:
        file = files[place] if place < len(files) else None
        if isinstance(file, RemoteFile) and (copy := fetcher.hold(file, is_needed=False)) is not None:
            # It is there for a moment at least; nobody removes the newest without need.
            copy.release()

    pool = ThreadPoolExecutor(1, thread_name_prefix="bring")
    try:
        for place, file in enumerate(files):
            if not isinstance(file, RemoteFile):
                yield file
                continue
            held = fetcher.hold(file)
            assert held is not None
            with held:
                pool.submit(bring_ahead, place + 1)
                yield held.path / file.name
    finally:
        fetcher.stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def beside(call: Callable[[], T]) -> T:
    """What `call` returns or raises; signals end the wait for it, for it runs on a thread of its own."""
    outcome: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome.put((None, error))

    threading.Thread(target=run, name="beside", daemon=True).start()
    value, error = outcome.get()
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
