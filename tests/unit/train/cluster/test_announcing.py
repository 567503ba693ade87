"""Keys that servers are told before their rows are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.train.cluster.servers import ByHand
from tests.unit.train.cluster.test_exchange import plain_job

from clickmill.errors import ClickmillError

FIRST, SECOND = np.arange(1, 6, dtype=np.uint64), np.arange(4, 12, dtype=np.uint64)


@pytest.fixture(params=[1, 2])
def trainer(request, start_servers):
    return ByHand(start_servers(request.param), plain_job())


def test_rows_that_were_announced_are_read_after_the_push(trainer):
    ticket, lookup = trainer.begin(FIRST)
    announced = trainer.session.locate_signs(0, SECOND)
    trainer.session.announce([announced])
    before = trainer.rows(SECOND)
    _, _, [[after]] = trainer.session.step([trainer.push(ticket, lookup, 1.0)], [announced])
    moved = (after.values() != before).any(axis=1)
    np.testing.assert_array_equal(moved, np.isin(SECOND, FIRST))
    np.testing.assert_array_equal(after.values(), trainer.rows(SECOND))
    # They can be pushed to as any others.
    trainer.session.step([trainer.push(announced, after, 1.0)], [])
    np.testing.assert_array_equal(
        (trainer.rows(SECOND) != after.values()).any(axis=1), np.ones(len(SECOND), bool)
    )


def test_keys_travel_once(trainer):
    ticket, lookup = trainer.begin(FIRST)
    many = np.arange(1, 5_001, dtype=np.uint64)
    announced = trainer.session.locate_signs(0, many)
    trainer.session.announce([announced])
    sent, _, _ = trainer.session.traffic()
    trainer.session.step([trainer.push(ticket, lookup, 1.0)], [announced])
    assert trainer.session.traffic()[0] - sent < many.nbytes


def test_a_step_may_leave_what_was_announced_for_later(trainer):
    """As before a fence: the push goes alone, and the rows are asked for after it."""
    ticket, lookup = trainer.begin(FIRST)
    announced = trainer.session.locate_signs(0, SECOND)
    trainer.session.announce([announced])
    _, _, given = trainer.session.step([trainer.push(ticket, lookup, 1.0)], [])
    assert given == []
    _, _, [[rows]] = trainer.session.step([], [announced])
    np.testing.assert_array_equal(rows.values(), trainer.rows(SECOND))


def test_an_announcement_makes_the_one_before_void(trainer):
    ticket, lookup = trainer.begin(FIRST)
    void, valid = (trainer.session.locate_signs(0, SECOND) for _ in range(2))
    trainer.session.announce([void])
    trainer.session.announce([valid])
    with pytest.raises(ClickmillError, match="not announced"):
        trainer.session.step([trainer.push(ticket, lookup, 1.0)], [void])
