"""A folder of this host for copies of what lies elsewhere: shared by processes, bounded, never half.

    <folder>/
      room.lock               held by whoever makes room
      <digest>.lock           shared by those who use a copy, held by the one who makes or removes it
      <digest>/reserved       bytes that are on their way, while they are
      <digest>/partial/       what is being brought
      <digest>/content/       a whole copy; takes its name in one step

Locks are the kernel's: a process that is killed lets go of them, and what it leaves half done is removed by
the next one that comes by.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill._sizes import parse_size
from clickmill.errors import ConfigError, StorageError
from clickmill.store import durable
from clickmill.store.named_path import home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

FOLDER = "CLICKMILL_CACHE"
"""Variable: the folder."""
MAX_BYTES = "CLICKMILL_CACHE_BYTES"
"""Variable: how much it may hold; absent: as much as its disk has room for."""

_MARGIN_BYTES = 64 << 20
"""Left free on the disk for others."""
_ROOM_PATIENCE_S = 30.0
_FIRST_LOOK_S, _LOOK_S = 0.005, 0.2
"""Pauses between looks at what another has to do first."""


class Held:
    """A copy in use: nobody removes it before it is released, or this process ends."""

    def __init__(self, path: Path, lock: _Lock) -> None:
        self.path = path
        self._lock = lock

    def release(self) -> None:
        """It may be removed when there is need of room."""
        self._lock.close()

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _default_folder() -> Path:
    parent = home()
    if parent is None:
        message = "this user has no home folder, so there is no place for copies of remote files"
        raise ConfigError(message, hint=f"set {FOLDER} to a folder for them")
    return parent / ".cache" / "clickmill"


class Cache:
    """Copies by key; what is not used goes, the longest unused first, when there is need of room."""

    def __init__(
        self, folder: Path, max_bytes: int | None = None, *, room_patience_s: float = _ROOM_PATIENCE_S
    ) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._room_patience_s = room_patience_s

    @classmethod
    def of_environment(cls) -> Cache:
        """As CLICKMILL_CACHE and CLICKMILL_CACHE_BYTES say."""
        named = os.environ.get(FOLDER)
        folder = Path(named) if named else _default_folder()
        try:
            max_bytes = parse_size(os.environ.get(MAX_BYTES, "").strip())
        except ConfigError as error:
            raise ConfigError(f"{MAX_BYTES}: {error}") from error
        return cls(folder.absolute(), max_bytes)

    def path_of(self, key: str) -> Path:
        """Where the copy is while it is held."""
        return self._entry(key) / "content"

    def hold(
        self,
        key: str,
        num_bytes: int,
        fill: Callable[[Path], None],
        *,
        is_needed: bool = True,
        while_waiting: Callable[[], None] = lambda: None,
    ) -> tuple[Held, bool] | None:
        """The copy of `key`, and whether it was there; `fill` makes it in a folder that it is given.

        Waits for another process that makes it, and for room: None where that is lacking and it is not
        `is_needed`, StorageError where none comes. `while_waiting` is called now and then.
        """
        was_there = True
        while True:
            held = self._use(key, while_waiting)
            if held is not None:
                return held, was_there
            if not self._make(key, num_bytes, fill, while_waiting if is_needed else None):
                return None
            was_there = False

    def _entry(self, key: str) -> Path:
        return self.folder / hashlib.sha256(key.encode()).hexdigest()[:32]

    def _use(self, key: str, while_waiting: Callable[[], None]) -> Held | None:
        entry = self._entry(key)
        lock = self._lock(entry)
        try:
            lock.share(while_waiting)
        except BaseException:
            lock.close()
            raise
        if (entry / "content").is_dir():
            os.utime(lock.path)
            return Held(entry / "content", lock)
        lock.close()
        return None

    def _make(
        self, key: str, num_bytes: int, fill: Callable[[Path], None], wait: Callable[[], None] | None
    ) -> bool:
        """Make the copy, unless another process does or has done so; False where there is no room."""
        entry = self._entry(key)
        with self._lock(entry) as lock:
            # To wait here would be to wait until those are done who use what another has made meanwhile.
            if not lock.try_own() or (entry / "content").is_dir():
                return True
            try:
                # Of a process that was killed.
                shutil.rmtree(entry, ignore_errors=True)
                if not self._reserve(entry, num_bytes, wait):
                    lock.remove()
                    return False
                partial = entry / "partial"
                with durable.writing(partial):
                    partial.mkdir()
                fill(partial)
                with durable.writing(entry / "content"):
                    _sync(partial)
                    partial.rename(entry / "content")
                    durable.sync_folder(entry)
                    (entry / "reserved").unlink()
            except BaseException:
                shutil.rmtree(entry, ignore_errors=True)
                lock.remove()
                raise
        return True

    def _lock(self, entry: Path) -> _Lock:
        with durable.writing(entry):
            # What lies here may be for its owner's eyes only.
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            return _Lock(entry.with_suffix(".lock"))

    # Room.

    def _reserve(self, entry: Path, num_bytes: int, wait: Callable[[], None] | None) -> bool:
        """Take room for a new copy; False where there is none and nobody wants to `wait`."""
        if self.max_bytes is not None and num_bytes > self.max_bytes:
            raise StorageError(
                f"a copy of {num_bytes} bytes is needed, and the cache `{self.folder}` may hold "
                f"{self.max_bytes}",
                hint=f"raise {MAX_BYTES}, or cut the data into smaller files",
            )
        deadline = time.monotonic() + self._room_patience_s
        while True:
            with _Lock(self.folder / "room.lock") as lock:
                lock.own()
                missing = self._make_room(num_bytes)
                if missing <= 0:
                    with durable.writing(entry):
                        entry.mkdir(exist_ok=True)
                        (entry / "reserved").write_text(str(num_bytes), encoding="ascii")
                    return True
            if wait is None:
                return False
            if time.monotonic() > deadline:
                raise StorageError(
                    f"no room for {num_bytes} bytes in the cache `{self.folder}`: {missing} are missing, and "
                    "all that it holds is in use",
                    hint=f"raise {MAX_BYTES}, free some space on its disk, or set {FOLDER} to another folder",
                )
            # Others may be done with what they use.
            wait()
            time.sleep(_LOOK_S)

    def _make_room(self, num_bytes: int) -> int:
        """Remove copies that nobody uses, as far as needed; bytes that are missing all the same."""
        copies = sorted(self._copies(), key=lambda copy: copy[0])
        free = shutil.disk_usage(self.folder).free - _MARGIN_BYTES
        used = sum(size for _, size, _ in copies)
        room = free if self.max_bytes is None else min(free, self.max_bytes - used)
        for _, size, entry in copies:
            if room >= num_bytes:
                break
            if self._drop(entry):
                room += size
        return num_bytes - room

    def _copies(self) -> Iterator[tuple[float, int, Path]]:
        """When it was used last, its bytes, its folder."""
        for entry in self.folder.iterdir():
            if entry.suffix or not entry.is_dir():
                continue
            with contextlib.suppress(FileNotFoundError, ValueError):  # it goes, or comes, this moment
                lock = entry.with_suffix(".lock")
                used = lock.stat().st_mtime if lock.exists() else 0.0
                reserved = entry / "reserved"
                size = int(reserved.read_text(encoding="ascii")) if reserved.exists() else _size(entry)
                yield used, size, entry

    def _drop(self, entry: Path) -> bool:
        """Remove a copy unless somebody uses it, or makes it."""
        with _Lock(entry.with_suffix(".lock")) as lock:
            if not lock.try_own():
                return False
            shutil.rmtree(entry, ignore_errors=True)
            lock.remove()
            return True


class _Lock:
    """A file that is locked; one that was removed meanwhile counts for nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._open()

    def _open(self) -> None:
        self.close()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def __enter__(self) -> _Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def own(self) -> None:
        """Lock it for this one alone, however long that takes."""
        while True:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            if self._is_there():
                return
            self._open()

    def share(self, while_waiting: Callable[[], None]) -> None:
        """Lock it beside others who do so, when the one has gone who has it alone."""
        pause_s = _FIRST_LOOK_S
        while not self._try(fcntl.LOCK_SH):
            while_waiting()
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LOOK_S)
            self._open()

    def try_own(self) -> bool:
        """Lock it for this one alone, if nobody else has it."""
        return self._try(fcntl.LOCK_EX)

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return self._is_there()

    def remove(self) -> None:
        """Remove the file; only by the one who has locked it alone."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _is_there(self) -> bool:
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        own = os.fstat(self._descriptor)
        return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)


def _size(folder: Path) -> int:
    return sum(
        (Path(parent) / name).lstat().st_size for parent, _, names in os.walk(folder) for name in names
    )


def _sync(folder: Path) -> None:
    for parent, _, _ in os.walk(folder):
        durable.sync_folder(Path(parent))
