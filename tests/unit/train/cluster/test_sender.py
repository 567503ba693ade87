"""The queue of pushes on its own, before real servers that are let through one frame at a time."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from tests.unit.train.cluster.servers import ByHand
from tests.unit.train.cluster.test_exchange import plain_job

from clickmill import _core
from clickmill.errors import WireError
from clickmill.train.cluster.sender import Sender, merge_entries

SIGNS = np.arange(1, 6, dtype=np.uint64)
RATE = ByHand.RATE
WAIT_S = 60.0


class Gate:
    """A session whose frames wait until they are let through."""

    def __init__(self, session):
        self._session = session
        self._free = threading.Semaphore(0)
        self.arrived = threading.Semaphore(0)

    def step(self, pushes, tickets):
        self.arrived.release()
        assert self._free.acquire(timeout=WAIT_S)
        return self._session.step(pushes, tickets)

    def open(self, frames: int = 1) -> None:
        self._free.release(frames)


class Bench:
    """Gradients by hand for one table, and its rows as the servers hold them."""

    def __init__(self, servers, job):
        self._trainer = ByHand(servers, job)
        self.gate = Gate(self._trainer.open_session())
        self.reading = self._trainer.session

    def push(self, gradient: float, signs=SIGNS) -> _core.Push:
        return self._trainer.push(*self._trainer.begin(signs), gradient)

    def rows(self):
        return self._trainer.rows(SIGNS)

    def dense(self):
        out = np.zeros(7, np.float32)
        self.reading.step([], [self.reading.locate_signs(0, SIGNS[:0])], False, [out])
        return out


@pytest.fixture
def bench(start_servers):
    return Bench(start_servers(2), plain_job())


@pytest.fixture
def make_sender(bench):
    senders = []

    def make(**options):
        senders.append(Sender(bench.gate, **{"max_merged": 1, "is_average": False, **options}))
        return senders[-1]

    yield make
    bench.gate.open(100)
    for sender in senders:
        sender.close()


def test_a_full_queue_makes_the_trainer_wait(bench, make_sender):
    sender = make_sender(size=2)
    sender.put(bench.push(1.0))
    assert bench.gate.arrived.acquire(timeout=WAIT_S), "the first is under way"
    sender.put(bench.push(1.0))
    sender.put(bench.push(1.0))
    assert sender.counts.waits == 0
    is_in = threading.Event()
    one_more = bench.push(1.0)
    beside = threading.Thread(target=lambda: (sender.put(one_more), is_in.set()))
    beside.start()
    while sender.counts.waits == 0:
        beside.join(0.001)
    assert not is_in.is_set()
    bench.gate.open()
    assert is_in.wait(WAIT_S), "room for one more"
    beside.join()
    bench.gate.open(3)
    sender.flush()
    counts = sender.counts
    assert (counts.pushes, counts.frames, counts.longest, counts.waits) == (4, 4, 2, 1)


@pytest.mark.parametrize("is_average", [False, True])
def test_pushes_that_wait_are_merged_into_one_update(bench, make_sender, is_average):
    sender = make_sender(size=8, max_merged=3, is_average=is_average)
    rows, dense = bench.rows(), bench.dense()
    sender.put(bench.push(1.0))
    assert bench.gate.arrived.acquire(timeout=WAIT_S)
    for gradient, signs in ((2.0, SIGNS), (4.0, SIGNS[:2]), (6.0, SIGNS), (8.0, SIGNS)):
        sender.put(bench.push(gradient, signs))
    bench.gate.open(3)
    step, _ = sender.flush()
    assert step == sender.counts.frames == 3
    share = 1.0 / 3.0 if is_average else 1.0
    moved = RATE * (1.0 + share * (2.0 + 4.0 + 6.0) + 8.0)
    np.testing.assert_allclose(bench.dense(), dense - moved, atol=1e-4)
    np.testing.assert_allclose(bench.rows()[:2], rows[:2] - moved, atol=1e-4)
    others = RATE * (1.0 + share * (2.0 + 6.0) + 8.0)
    np.testing.assert_allclose(bench.rows()[2:], rows[2:] - others, atol=1e-4)


def test_what_goes_wrong_under_way_is_raised_where_pushes_are_brought(bench, make_sender):
    sender = make_sender(size=2)
    push = bench.push(1.0)
    bench.gate.open(2)
    sender.put(push)
    sender.flush()
    sender.put(_core.Push.merge([bench.push(1.0), bench.push(1.0)], "no entry", False))
    bench.gate.open()
    with pytest.raises(WireError, match="ledger"):
        sender.flush()
    with pytest.raises(WireError):
        sender.put(bench.push(1.0))


def test_entries_of_merged_pushes_say_together_what_each_said():
    def entry(samples: int, position: str, *, is_last: bool) -> str:
        parts = {"unit": 3, "position": position, "samples": samples, "batches": 1, "is_last": is_last}
        return json.dumps({"lease": 5, "entry": parts})

    merged = json.loads(merge_entries([entry(100, "a", is_last=False), entry(50, "b", is_last=True)]))
    assert merged == {
        "lease": 5,
        "entry": {"unit": 3, "position": "b", "samples": 150, "batches": 2, "is_last": True},
    }
