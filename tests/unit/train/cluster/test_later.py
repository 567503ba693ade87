"""Rows that servers find while the batch before theirs is computed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.unit.train.cluster.conftest import cluster_config
from tests.unit.train.cluster.servers import ByHand, Watched
from tests.unit.train.cluster.test_exchange import job

from clickmill.errors import WireError
from clickmill.train.cluster.worker import Worker

FIRST, SECOND, THIRD = (np.arange(begin, begin + 1000, dtype=np.uint64) for begin in (1, 501, 2001))


def rows_of(servers) -> int:
    return sum(json.loads(server.health())["statistics"]["rows"] for server in servers.running)


@pytest.mark.parametrize("num_servers", [1, 2])
def test_keys_travel_once_and_rows_are_there_when_they_are_asked_for(start_servers, num_servers):
    servers = start_servers(num_servers)
    hand = ByHand(servers, {**job(1), "strategy": "async"})
    own, lookup = hand.begin(FIRST)
    following, later = (hand.session.locate_signs(0, signs) for signs in (SECOND, THIRD))
    lookup = hand.session.step([hand.push(own, lookup, 1.0)], [following], True, None, [later])[2][0][0]
    before = hand.session.traffic()[0]
    (found,) = hand.session.step([hand.push(following, lookup, 1.0)], [later])[2][0]
    sent = hand.session.traffic()[0] - before
    gradients = 4 * lookup.values().size
    assert gradients < sent < gradients + 8 * THIRD.size, "no keys"
    np.testing.assert_array_equal(found.values(), hand.rows(THIRD))
    assert rows_of(servers) == len({*FIRST, *SECOND, *THIRD})


def test_rows_that_are_found_ahead_are_read_when_they_are_asked_for(start_servers):
    """Not when they are found: what is pushed in between counts."""
    hand = ByHand(start_servers(), {**job(1), "strategy": "async"})
    own, lookup = hand.begin(FIRST)
    following, later = (hand.session.locate_signs(0, signs) for signs in (SECOND, FIRST))
    lookup = hand.session.step([hand.push(own, lookup, 1.0)], [following], True, None, [later])[2][0][0]
    (found,) = hand.session.step([hand.push(following, lookup, 1.0)], [later])[2][0]
    np.testing.assert_array_equal(found.values(), hand.rows(FIRST))


def test_rows_whose_keys_never_came_are_refused(start_servers):
    one, other = (ByHand(start_servers(), {**job(1), "strategy": "async"}) for _ in range(2))
    own, lookup = one.begin(FIRST)
    later = one.session.locate_signs(0, SECOND)
    one.session.step([one.push(own, lookup, 1.0)], [], True, None, [later])
    with pytest.raises(WireError, match="keys never came"):
        other.session.step([], [later])


@pytest.mark.parametrize("num_servers", [1, 2])
def test_no_row_is_made_before_a_fence_that_its_batch_comes_after(
    workplace, start_servers, monkeypatch, num_servers
):
    servers = start_servers(num_servers, "run")
    trainer = Watched(cluster_config("runner.0.save_step_interval=5"), servers)
    signs: set[int] = set()
    found = []
    after_step, park = trainer._after_step, Worker._park

    def note(batch, loss, step) -> None:
        signs.update(*(batch.signs(group).tolist() for group in range(batch.num_groups)))
        after_step(batch, loss, step)

    def look(worker, fence) -> None:
        found.append((rows_of(servers), len(signs)))
        park(worker, fence)

    trainer._after_step = note
    monkeypatch.setattr(Worker, "_park", look)
    summary = trainer.run()
    assert summary["samples"] == 3050
    assert len(found) >= 3
    for rows, expected in found:
        assert rows == expected
