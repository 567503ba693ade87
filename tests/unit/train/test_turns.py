from __future__ import annotations

import threading

import pytest

from clickmill.train.turns import run_in_turns


class Recorder:
    """Batches 0..n-1; writes down the order of what happens in turn."""

    def __init__(self, num_batches: int) -> None:
        self.left = iter(range(num_batches))
        self.events: list[tuple[str, int]] = []
        self.in_turn = threading.Lock()

    def pull(self, worker: int) -> int | None:
        batch = next(self.left, None)
        if batch is not None:
            self._note("pull", batch)
        return batch

    def compute(self, worker: int, pulled: int) -> int:
        return pulled * 10

    def commit(self, worker: int, pulled: int, computed: int) -> None:
        assert computed == pulled * 10
        self._note("commit", pulled)

    def _note(self, what: str, batch: int) -> None:
        assert self.in_turn.acquire(blocking=False), "two turns at once"
        self.events.append((what, batch))
        self.in_turn.release()


def expected_order(num_batches: int, num_workers: int) -> list[tuple[str, int]]:
    events = [("pull", batch) for batch in range(min(num_workers, num_batches))]
    for batch in range(num_batches):
        events.append(("commit", batch))
        if batch + num_workers < num_batches:
            events.append(("pull", batch + num_workers))
    return events


@pytest.mark.parametrize("num_workers", [1, 2, 3, 5])
@pytest.mark.parametrize("num_batches", [0, 1, 2, 4, 57])
def test_every_batch_is_pulled_a_fixed_number_of_commits_after_the_one_before(num_workers, num_batches):
    stages = Recorder(num_batches)
    run_in_turns(stages, num_workers)
    assert stages.events == expected_order(num_batches, num_workers)


@pytest.mark.parametrize("num_workers", [2, 3])
def test_order_holds_when_one_worker_is_slow(num_workers):
    class Slow(Recorder):
        others_waiting = threading.Event()

        def compute(self, worker, pulled):
            # Worker 0 finishes last each time: it waits until another worker has computed its batch.
            if worker == 0:
                self.others_waiting.wait(10)
                self.others_waiting.clear()
            else:
                self.others_waiting.set()
            return super().compute(worker, pulled)

    stages = Slow(num_workers * 6)
    run_in_turns(stages, num_workers)
    assert stages.events == expected_order(num_workers * 6, num_workers)


@pytest.mark.parametrize("num_workers", [1, 2, 4])
@pytest.mark.parametrize("stage", ["pull", "compute", "commit"])
def test_an_error_of_any_stage_stops_all_workers_and_is_raised(num_workers, stage):
    class Failing(Recorder):
        def _fail(self, batch):
            if batch == 9:
                raise RuntimeError("batch 9 is bad")

        def pull(self, worker):
            batch = super().pull(worker)
            if stage == "pull":
                self._fail(batch)
            return batch

        def compute(self, worker, pulled):
            if stage == "compute":
                self._fail(pulled)
            return super().compute(worker, pulled)

        def commit(self, worker, pulled, computed):
            if stage == "commit":
                self._fail(pulled)
            super().commit(worker, pulled, computed)

    stages = Failing(1000)
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="batch 9 is bad"):
        run_in_turns(stages, num_workers)
    assert threading.active_count() == before
    assert ("commit", 9) not in stages.events
