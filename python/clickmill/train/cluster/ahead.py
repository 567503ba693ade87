"""A thread that works ahead: what it makes waits, a few at a time, for whoever takes it."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

T = TypeVar("T")


class Ahead(Generic[T]):
    """Calls `make` until it gives None, up to `depth` results ahead of `take`."""

    def __init__(self, make: Callable[[], T | None], depth: int) -> None:
        self._make = make
        self._depth = depth
        self._made: deque[T | None] = deque()
        self._error: BaseException | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ahead", daemon=True)
        self._thread.start()

    def __enter__(self) -> Ahead[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop what waits, and let the thread end after what it makes now."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def take(self) -> T | None:
        """The next result; None once there are no more. Raises what making it has raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._made or self._error is not None)
            if not self._made:
                assert self._error is not None
                raise self._error
            taken = self._made.popleft()
            self._changed.notify_all()
            return taken

    def _run(self) -> None:
        while self._has_room():
            try:
                made = self._make()
            except BaseException as error:  # noqa: BLE001 - raised again where it is taken
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._made.append(made)
                self._changed.notify_all()
            if made is None:
                return

    def _has_room(self) -> bool:
        """Whether to go on; waits while enough is made."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._made) < self._depth or self._is_closed)
            return not self._is_closed
