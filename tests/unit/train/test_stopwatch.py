"""Whose time counts: that of the thread that trains, and of those that it waits for."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from clickmill.train import stopwatch as module
from clickmill.train.bound import Bound, Stages, find_bound
from clickmill.train.stopwatch import LOST, Stopwatch


class Clock:
    """Time passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def beside(work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_what_is_done_beside_counts_only_as_far_as_it_was_waited_for(clock):
    watch = Stopwatch()

    def read() -> None:
        with watch.measure("read"):
            clock.now += 3.0
        with watch.measure("locate"):
            clock.now += 1.0

    with watch.measure("compute"):
        beside(read)
    with watch.waiting():
        clock.now += 2.0
    assert watch.take() == pytest.approx({"compute": 4.0, "read": 1.5, "locate": 0.5, "other": 0.0})


def test_a_stage_inside_of_another_counts_once(clock):
    watch = Stopwatch()
    with watch.measure("push"):
        clock.now += 1.0
        with watch.measure("wait"):
            clock.now += 5.0
        clock.now += 2.0
        watch.add({"pull": 2.0})
    clock.now += 4.0
    assert watch.take() == pytest.approx({"wait": 5.0, "pull": 2.0, "push": 1.0, "other": 4.0})


def test_taking_starts_again_and_totals_do_not(clock):
    watch = Stopwatch()
    for seconds in (1.0, 2.0):
        with watch.measure("read"):
            clock.now += seconds
        assert watch.take()["read"] == pytest.approx(seconds)
    assert watch.totals()["read"] == pytest.approx(3.0)


def test_who_asks_meanwhile_sees_the_stage_that_is_under_way(clock):
    watch = Stopwatch()
    seen: list[dict[str, float]] = []
    with watch.measure("push"):
        clock.now += 1.0
        with watch.measure("wait"):
            clock.now += 9.0
            beside(lambda: seen.append(watch.totals()))
    assert seen == [pytest.approx({"push": 1.0, "wait": 9.0, "other": 0.0})]
    assert watch.totals() == pytest.approx({"push": 1.0, "wait": 9.0, "other": 0.0})


def bound(**trainers: dict[str, float]) -> Bound:
    return find_bound({name: [{"event": "interval", "stages": own}] for name, own in trainers.items()})


def test_the_stage_with_most_of_the_time_bounds_a_run():
    found = bound(a={"read": 1.0, "update_rows": 2.0, "update_dense": 2.0, "compute": 3.0, "validate": 90.0})
    assert found.run.bound == "push"
    assert found.run.shares["push"] == pytest.approx(0.04 / 0.98)
    assert found.to_json()["trainers"]["a"]["bound"] == "push"


def test_who_is_waited_for_is_named_with_what_it_does():
    found = bound(
        fast={"compute": 1.0, "wait": 8.0},
        slow={"compute": 1.0, "read": 6.0, "wait": 0.5},
        third={"wait": 5.0},
    )
    assert (found.run.bound, found.awaited) == ("wait", "slow")
    assert found.words().endswith("The others wait for slow, whose time goes to read.")


def test_a_wait_for_lost_servers_is_no_wait_for_a_trainer(clock):
    watch = Stopwatch()
    with pytest.raises(ConnectionError), watch.measure("wait", failed=LOST):
        clock.now += 3.0
        raise ConnectionError
    watch.settle("reload")
    with watch.measure("wait") as under_way:
        clock.now += 4.0
        under_way.stage = "reload"
    with watch.measure("compute"):
        clock.now += 2.0
    found = bound(a=watch.take(), b={"compute": 2.0, "wait": 1.0})
    assert found.run.seconds == {"compute": 4.0, "reload": 7.0, "other": 0.0, "wait": 1.0}
    assert (found.run.bound, found.awaited) == ("reload", None)
    assert "waiting for servers that were lost" in found.words()


def test_nothing_is_named_where_nothing_was_measured():
    assert Stages().bound is None
    assert find_bound({"a": [{"event": "note"}]}).words() == "Nobody has measured where the time went."


def trainer_journal(begin: float, end: float, units: int, **stages: float) -> list[dict[str, Any]]:
    return [
        {"event": "trainer_start", "time": begin, "name": "t", "number": 0, "units": units},
        {"event": "interval", "time": end, "stages": stages},
    ]


def test_trainers_without_data_do_not_make_waiting_the_bound():
    found = find_bound(
        {
            "a": trainer_journal(0.0, 10.0, 1, compute=8.0, wait=1.0),
            "b": trainer_journal(0.0, 10.0, 1, wait=10.0),
            "c": trainer_journal(0.0, 10.0, 1, wait=10.0),
        }
    )
    assert (found.run.bound, found.awaited) == ("compute", None)
    assert found.sharing.idle_seconds == pytest.approx(20.0)
    assert "too little data to share: 1 unit for 3 trainers" in found.words()
    assert "`cluster.lease_bytes` smaller" in found.words()
    assert found.to_json()["has_too_little_data"]


def test_nobody_is_waited_for_who_waits_most_of_the_time_too():
    found = bound(a={"compute": 2.0, "wait": 3.0}, b={"compute": 1.0, "wait": 4.0})
    assert (found.run.bound, found.awaited) == ("wait", None)
    assert "The others wait for" not in found.words()
    assert "No trainer holds the others up" in found.words()


def test_a_trainer_that_came_when_all_was_trained_does_not_make_waiting_the_bound():
    journals = {
        "a": trainer_journal(10.0, 20.0, 4, compute=3.0, wait=2.0),
        "b": trainer_journal(12.5, 20.0, 4, wait=7.0),
    }
    journals["a"][-1]["batches"], journals["b"][-1]["batches"] = 8, 0
    found = find_bound(journals)
    assert (found.run.bound, found.awaited) == ("compute", None)
    assert "b has trained on nothing" in found.words()
    assert "it came 2.5 s after the first trainer" in found.words()
    assert found.to_json()["late_seconds"] == {"b": 2.5}


def test_trainers_that_came_one_after_the_other_had_data_each():
    found = find_bound(
        {
            "a": trainer_journal(0.0, 10.0, 1, compute=3.0, wait=7.0),
            "b": trainer_journal(11.0, 20.0, 1, compute=2.0, wait=7.0),
        }
    )
    assert not found.sharing.is_short
    assert found.run.bound == "wait"
