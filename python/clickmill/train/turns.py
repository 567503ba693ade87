"""Several workers, one order: the rule that makes a threaded run repeatable.

Batch `i` belongs to worker `i % n`. What workers compute runs side by side; what they read from or
write to shared state happens in *turns*, one a batch, in the order of the batches:

    turn i:  commit(i), then pull(i + n)

so batch `i` is always pulled after commit `i - n` and before commit `i - n + 1`: a delay of `n - 1`
steps, fixed, whatever the speed of the threads. With one worker it is the plain loop.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Pulled = TypeVar("Pulled")
Computed = TypeVar("Computed")


class Stages(Protocol[Pulled, Computed]):
    """The three stages of a batch; `worker` counts from 0."""

    def pull(self, worker: int) -> Pulled | None:
        """Take the next batch and read shared state for it; None when there is none left. In turn."""

    def compute(self, worker: int, pulled: Pulled) -> Computed:
        """Work on one batch, side by side with the other workers."""

    def commit(self, worker: int, pulled: Pulled, computed: Computed) -> None:
        """Write the batch's result to shared state. In turn."""


class _Turns(Generic[Pulled, Computed]):
    def __init__(self, stages: Stages[Pulled, Computed], num_workers: int) -> None:
        self.stages = stages
        self.num_workers = num_workers
        self.condition = threading.Condition()
        self.next_turn = 0
        self.failure: BaseException | None = None

    def work(self, worker: int, pulled: Pulled | None) -> None:
        """Run worker `worker` from its first, already pulled, batch until there is none left."""
        turn = worker
        try:
            while pulled is not None:
                computed = self.stages.compute(worker, pulled)
                if not self._wait(turn):
                    return
                self.stages.commit(worker, pulled, computed)
                pulled = self.stages.pull(worker)
                self._pass_on()
                turn += self.num_workers
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that started the workers
            self._fail(error)

    def _wait(self, turn: int) -> bool:
        with self.condition:
            self.condition.wait_for(lambda: self.next_turn == turn or self.failure is not None)
            return self.failure is None

    def _pass_on(self) -> None:
        with self.condition:
            self.next_turn += 1
            self.condition.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self.condition:
            if self.failure is None:
                self.failure = error
            self.condition.notify_all()


def run_in_turns(stages: Stages[Pulled, Computed], num_workers: int, *, name: str = "worker") -> None:
    """Run all batches that `stages.pull` yields over `num_workers` threads; return when all are committed.

    The first error of any worker stops the others at their next turn and is raised here, as is what a signal
    raises in the calling thread.
    """
    turns = _Turns(stages, num_workers)
    first = [stages.pull(worker) for worker in range(num_workers)]
    if num_workers == 1:
        turns.work(0, first[0])
    else:
        threads = [
            threading.Thread(target=turns.work, args=(worker, pulled), name=f"{name}-{worker}")
            for worker, pulled in enumerate(first)
        ]
        _run_threads(threads, turns._fail)
    if turns.failure is not None:
        raise turns.failure


def _run_threads(threads: list[threading.Thread], fail: Callable[[BaseException], None]) -> None:
    """Start all threads and wait for them; none outlives this call, whenever a signal arrives."""
    waiting = list(threads)
    while waiting:
        try:
            if waiting[0].ident is None:
                for thread in waiting:
                    thread.start()
            for thread in waiting:
                thread.join()
            return
        except (KeyboardInterrupt, SystemExit) as interrupt:
            # The workers stop at their next turn.
            fail(interrupt)
            waiting = [thread for thread in threads if thread.is_alive()]
