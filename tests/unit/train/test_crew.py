from __future__ import annotations

import threading

import pytest

from clickmill.train.crew import Crew


@pytest.mark.parametrize("size", [1, 2, 4])
def test_tasks_run_at_the_same_time_and_their_results_keep_their_order(size):
    meeting = threading.Barrier(size, timeout=30)

    def task(number: int) -> int:
        meeting.wait()
        return number * 10

    with Crew(size) as crew:
        for _ in range(3):
            assert crew.run([lambda n=n: task(n) for n in range(size)]) == [10 * n for n in range(size)]


def test_fewer_tasks_than_workers_are_fine():
    with Crew(3) as crew:
        assert crew.run([lambda: 1]) == [1]
        assert crew.run([lambda: 1, lambda: 2]) == [1, 2]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_is_raised_when_all_tasks_have_ended(failing):
    ended = []
    go = threading.Event()

    def task(number: int) -> None:
        if number == failing:
            go.set()
            raise RuntimeError(f"task {number}")
        go.wait(30)
        ended.append(number)

    with Crew(3) as crew, pytest.raises(RuntimeError, match=f"task {failing}"):
        # Worker 0 is the caller: it would wait for ever for a later task that has not begun.
        crew.run([lambda n=n: task(n) for n in range(3)])
    assert sorted(ended) == [number for number in range(3) if number != failing]


def test_work_ahead_runs_beside_a_round_of_tasks():
    meeting = threading.Barrier(3, timeout=30)
    with Crew(2) as crew:
        ahead = crew.ahead(lambda: meeting.wait() >= 0)
        ahead.start()
        crew.run([meeting.wait, meeting.wait])
        assert ahead.wait()


def test_work_ahead_is_done_once_whoever_starts_it():
    done = []
    with Crew(2) as crew:
        ahead = crew.ahead(lambda: done.append("started"))
        ahead.start()
        ahead.start()
        ahead.wait()
        crew.ahead(lambda: done.append("waited for")).wait()
    assert done == ["started", "waited for"]


def test_work_ahead_that_is_settled_has_ended_and_leaves_no_outcome_behind():
    def fail() -> None:
        raise ValueError("of no interest")

    with Crew(2) as crew:
        ahead = crew.ahead(fail)
        ahead.settle()
        assert not ahead.is_started
        ahead.start()
        ahead.settle()
        assert crew.ahead(lambda: 7).wait() == 7


def test_a_wait_that_was_broken_off_can_be_begun_again():
    with Crew(1) as crew:
        ahead = crew.ahead(lambda: 7)
        assert ahead.wait() == 7
        # As after a signal whose handler raised when the result had been taken.
        ahead.settle()
        assert ahead.wait() == 7


def test_an_error_of_the_work_ahead_is_raised_where_its_result_is_asked_for():
    def fail() -> None:
        raise ValueError("ahead")

    with Crew(1) as crew:
        ahead = crew.ahead(fail)
        ahead.start()
        assert crew.run([lambda: 1]) == [1]
        with pytest.raises(ValueError, match="ahead"):
            ahead.wait()


def test_no_thread_outlives_the_crew():
    before = threading.active_count()
    with Crew(3) as crew:
        crew.ahead(lambda: None).wait()
        assert threading.active_count() == before + 3
    assert threading.active_count() == before
