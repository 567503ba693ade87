"""Servers that are killed: all go back to the last snapshot together, and go on.

`CLICKMILL_KILLS` sets how many seeds there are; `make chaos` sets it high.
"""

from __future__ import annotations

import random

import pytest

from tests.checkpoints import fingerprint
from tests.cluster.fleet import SAMPLES, Fleet, fleet
from tests.cluster.test_kill_training import KILLS, SEED

SEEDS = range(SEED, SEED + max(KILLS // 3, 1))


def moment(seed: int) -> int:
    return random.Random(seed).randrange(2 * SAMPLES - 200)


def restart(own: Fleet, *indices: int, elsewhere: bool = False) -> None:
    own.kill(*(own.servers[index] for index in indices))
    for index in indices:
        own.start_server(index, elsewhere=elsewhere)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strategy", ["sync", "async", "hybrid", "geo"])
@pytest.mark.parametrize("killed", [(1,), (0,), (0, 1)], ids=["server 1", "the coordinator", "all servers"])
def test_training_goes_on_from_the_last_snapshot(cluster_place, undisturbed_sync, strategy, killed, seed):
    with fleet(cluster_place, 2, 2, f"runner.0.distribute_strategy={strategy}") as own:
        if own.wait_for_samples(moment(seed)):
            restart(own, *killed, elsewhere=killed == (1,) and seed % 2 == 0)
        summary = own.finish()
        own.assert_exact(summary)
    if strategy == "sync":
        assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_everything_may_die_and_come_back_in_other_numbers(cluster_place, undisturbed_sync, seed):
    draw = random.Random(seed)
    with fleet(cluster_place, 2, 2) as own:
        # A run of which nothing was kept begins with the lanes of those who come then.
        assert own.wait_until(lambda status: status["snapshot"]["committed"] is not None)
        own.wait_for_samples(moment(seed))
        own.kill(*own.servers, *own.members)
        own.servers.clear()
        own.addresses.clear()
        own.pservers, own.trainers = draw.choice([(1, 3), (3, 1)])
        own.options = (f"runner.0.worker_num={own.trainers}",)
        own.start()
        summary = own.finish()
        own.assert_exact(summary)
    assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync


@pytest.mark.skipif(KILLS <= 3, reason="a long one, for `make chaos`")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strategy", ["sync", "async", "hybrid", "geo"])
def test_a_run_survives_whatever_is_killed_again_and_again(cluster_place, strategy, seed):
    draw = random.Random(seed)
    options = (f"runner.0.distribute_strategy={strategy}", "runner.0.epochs=8")
    with fleet(cluster_place, 2, 2, *options) as own:
        trained = 0
        for _ in range(12):
            trained += draw.randrange(2000)
            if not own.wait_for_samples(trained):
                break
            what = draw.randrange(5)
            if what < 2:
                own.kill(own.members[-1 - what])
                own.start_trainer()
            else:
                restart(own, *[(1,), (0,), (0, 1)][what - 2])
            trained = 0
        own.assert_exact(own.finish(), passes=8)
