"""Trainers that are killed, come late, or go: the others finish, and nothing is trained twice or left out.

`CLICKMILL_KILLS` sets how many seeds there are; `make chaos` sets it high.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.checkpoints import fingerprint
from tests.cluster.fleet import SAMPLES, fleet, name_of
from tests.cluster.process import Command
from tests.cluster.test_kill_training import KILLS, SEED

SEEDS = range(SEED, SEED + max(KILLS // 3, 1))


def moments(seed: int, count: int) -> list[int]:
    """Numbers of samples at which something happens, in the two passes of a run."""
    draw = random.Random(seed)
    return sorted(draw.randrange(2 * SAMPLES - 200) for _ in range(count))


def has_joined(trainer: Command, status: dict[str, Any]) -> bool:
    """The end of a run waits for one that never does."""
    return any(each["name"] == name_of(trainer) for each in status["trainers"])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strategy", ["sync", "async", "hybrid", "geo"])
def test_the_others_finish_what_a_killed_trainer_had(cluster_place, undisturbed_sync, strategy, seed):
    options = (f"runner.0.distribute_strategy={strategy}", "runner.0.worker_num=3")
    if strategy == "sync":
        options = options[:1]
    with fleet(cluster_place, 2, 3, *options) as own:
        for moment in moments(seed, 2):
            joined = own.wait_until(
                lambda status, moment=moment: (
                    status["samples"] >= moment and has_joined(own.members[0], status)
                )
            )
            if joined is not None:
                own.kill(own.members[0])
        summary = own.finish()
        own.assert_exact(summary)
    if strategy == "sync":
        assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_new_trainers_take_over_when_all_are_killed(cluster_place, undisturbed_sync, seed):
    with fleet(cluster_place, 2, 2) as own:
        for moment in moments(seed, 2):
            if own.wait_for_samples(moment):
                own.kill(*own.members)
                own.start_trainer()
                own.start_trainer()
        summary = own.finish()
        own.assert_exact(summary)
    assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync


@pytest.mark.parametrize("strategy", ["sync", "async", "geo"])
def test_a_trainer_that_comes_late_takes_part(cluster_place, strategy):
    options = (f"runner.0.distribute_strategy={strategy}", "runner.0.epochs=6")
    with fleet(cluster_place, 2, 1, *options, gather_s=0.01) as own:
        assert own.wait_for_samples(300)
        own.start_trainer("late")
        has_units = own.wait_until(
            lambda status: any(each["name"] == "late" and each["units"] for each in status["trainers"])
        )
        assert has_units is not None, own.words
        own.assert_exact(own.finish(), passes=6)


def test_a_trainer_that_comes_after_the_end_hears_of_it(cluster_place):
    options = ("runner.0.distribute_strategy=async", "runner.0.epochs=1")
    with fleet(cluster_place, 2, 1, *options) as own:
        assert own.members[0].wait() == 0, own.words
        own.start_trainer("late")
        own.assert_exact(own.finish(), passes=1)
