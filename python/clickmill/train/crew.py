"""A crew of worker threads: several tasks at once, and back when all are done.

The caller is worker 0; the others wait on queues of their own. Between two calls nothing runs, so what
the caller does there needs no lock.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

Result = TypeVar("Result")


class _Outcome(Generic[Result]):
    """What a task returned or raised."""

    def __init__(self, task: Callable[[], Result]) -> None:
        self.error: BaseException | None = None
        try:
            self.value = task()
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self.error = error


class Errand(Generic[Result]):
    """A task for a worker.

    It keeps its outcome: a wait that a signal breaks off, wherever, can be begun again.
    """

    def __init__(self, task: Callable[[], Result], tasks: SimpleQueue[Callable[[], object] | None]) -> None:
        self._task = task
        self._tasks = tasks
        self._outcome: _Outcome[Result] | None = None
        # Only wakes who waits. Signals may end a wait at any place: locks of Python's own could stay locked.
        self._end: SimpleQueue[None] = SimpleQueue()
        self._is_started = False

    @property
    def is_started(self) -> bool:
        return self._is_started

    def start(self) -> None:
        """Let it run; the first time counts."""
        if not self._is_started:
            self._tasks.put(self._run)
            self._is_started = True

    def settle(self) -> None:
        """Wait for its end, where it was started, whatever comes of it: another error counts more."""
        if self._is_started:
            self.end()

    def wait(self) -> Result:
        """Its result; it is started where nobody has done so."""
        self.start()
        outcome = self.end()
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    def end(self) -> _Outcome[Result]:
        """What came of it, once it has been started."""
        while self._outcome is None:
            self._end.get()
        return self._outcome

    def _run(self) -> None:
        self._outcome = _Outcome(self._task)
        self._end.put(None)


class Crew:
    """`size` workers, the caller's thread among them, and one more that works ahead."""

    def __init__(self, size: int) -> None:
        self.size = size
        # The last one works ahead.
        self._tasks: list[SimpleQueue[Callable[[], object] | None]] = [SimpleQueue() for _ in range(size)]
        self._threads = [
            # Daemons: a signal that arrives before `with` has begun must not leave the process waiting.
            threading.Thread(target=self._work, args=(index,), name=f"worker-{index + 1}", daemon=True)
            for index in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for tasks in self._tasks:
            tasks.put(None)
        for thread in self._threads:
            thread.join()

    def run(self, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
        """Run up to `size` tasks at once and return their results in order.

        All tasks have ended when this returns or raises; the error of the first task that failed counts.
        """
        errands = [Errand(task, queue) for queue, task in zip(self._tasks, tasks[1:], strict=False)]
        for errand in errands:
            errand.start()
        results = [_Outcome(tasks[0])]
        results += [errand.end() for errand in errands]
        for result in results:
            if result.error is not None:
                raise result.error
        return [result.value for result in results]

    def ahead(self, task: Callable[[], Result]) -> Errand[Result]:
        """A task that runs beside everything else, once it is started; one after the other."""
        return Errand(task, self._tasks[-1])

    def _work(self, index: int) -> None:
        while (task := self._tasks[index].get()) is not None:
            task()
