"""A network that loses all packets: the cluster goes on when it is mended, or ends and names who is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.checkpoints import fingerprint
from tests.cluster.fleet import fleet, name_of
from tests.cluster.network import Island, can_make_islands, island
from tests.cluster.test_kill_training import KILLS

pytestmark = pytest.mark.skipif(not can_make_islands(), reason="network namespaces need root and `ip`")


@pytest.fixture
def away() -> Iterator[Island]:
    with island() as own:
        yield own


def test_training_goes_on_when_the_network_is_mended(cluster_place, undisturbed_sync, away):
    with fleet(cluster_place, 2, 2, dead_after_s=2, island=away, exiles=("pserver-1",)) as own:
        assert own.wait_for_samples(1000)
        away.cut()
        lost = own.wait_until(lambda status: not all(each["is_live"] for each in status["servers"]))
        assert lost is not None, own.words
        away.mend()
        summary = own.finish()
        own.assert_exact(summary)
    assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync


def test_a_server_that_stays_cut_off_is_named_and_ends_too(cluster_place, away):
    options = ("runner.0.epochs=50",)
    settings = {"dead_after_s": 1, "wait_s": 3, "island": away, "exiles": ("pserver-1",)}
    with fleet(cluster_place, 2, 2, *options, **settings) as own:
        assert own.wait_for_samples(1000)
        away.cut()
        for each in (own.servers[0], *own.members):
            assert each.wait() == 1, own.words
            assert f"gave up waiting for pserver 1 ({own.addresses[1]})" in each.words
        assert own.servers[1].wait() == 1, own.words
        assert own.addresses[0] in own.servers[1].words


@pytest.mark.parametrize("strategy", ["sync", "async"] if KILLS > 3 else ["sync"])
def test_the_others_finish_without_a_trainer_that_is_cut_off(cluster_place, away, strategy):
    options = (f"runner.0.distribute_strategy={strategy}", "runner.0.epochs=6")
    settings = {"dead_after_s": 2, "wait_s": 2, "island": away, "exiles": ("trainer-3",)}
    with fleet(cluster_place, 2, 2, *options, **settings) as own:
        gone = own.members[1]
        both = own.wait_until(lambda status: sum(bool(each["units"]) for each in status["trainers"]) == 2)
        assert both is not None, own.words
        away.cut()
        own.members.remove(gone)
        own.assert_exact(own.finish(), passes=6)
        assert f"name={name_of(gone)}" in own.servers[0].words
        assert gone.wait() == 1, own.words
        assert own.addresses[0] in gone.words
