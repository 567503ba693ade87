"""A thread that works ahead of whoever takes what it makes."""

from __future__ import annotations

import threading
from itertools import count

import pytest

from clickmill.train.cluster.ahead import Ahead

WAIT_S = 60.0


def test_everything_comes_in_order_and_then_the_end():
    numbers = iter([1, 2, 3, 4, 5])
    with Ahead(lambda: next(numbers, None), 2) as ahead:
        assert [ahead.take() for _ in range(6)] == [1, 2, 3, 4, 5, None]


def test_no_more_is_made_than_may_wait():
    made = []
    enough, too_many = threading.Event(), threading.Event()
    numbers = count()

    def make() -> int:
        made.append(next(numbers))
        (enough if len(made) == 3 else too_many if len(made) > 4 else threading.Event()).set()
        return made[-1]

    with Ahead(make, 3) as ahead:
        assert enough.wait(WAIT_S)
        assert ahead.take() == 0
    # Closed: one was taken, three may wait.
    assert not too_many.is_set()
    assert made in ([0, 1, 2], [0, 1, 2, 3])


def test_an_error_comes_after_what_was_made_before_it():
    def make() -> int:
        if next(numbers) == 2:
            raise ValueError("broken")
        return 7

    numbers = count()
    with Ahead(make, 5) as ahead:
        assert (ahead.take(), ahead.take()) == (7, 7)
        for _ in range(2):
            with pytest.raises(ValueError, match="broken"):
                ahead.take()


def test_whoever_leaves_early_does_not_wait_for_the_end():
    with Ahead(lambda: 1, 4) as ahead:
        assert ahead.take() == 1
    assert not ahead._thread.is_alive()
