from __future__ import annotations

import math

import pytest

from clickmill.train.schedule import Constant, Cosine, Exponential, LinearWarmup, Plateau, Step


def test_step_falls_every_so_many_steps_or_passes():
    assert [Step(2, 0.5).factor(step, 0) for step in range(5)] == [1, 1, 0.5, 0.5, 0.25]
    assert [Step(1, 0.1, by_pass=True).factor(99, number) for number in range(3)] == pytest.approx(
        [1, 0.1, 0.01]
    )


def test_exponential_is_smooth_in_steps():
    assert Exponential(10, 0.5).factor(5, 0) == pytest.approx(math.sqrt(0.5))


def test_cosine_ends_at_its_minimum_and_stays():
    schedule = Cosine(total=10, minimum=0.1)
    assert schedule.factor(0, 0) == 1.0
    assert schedule.factor(5, 0) == pytest.approx(0.55)
    assert schedule.factor(10, 0) == schedule.factor(50, 0) == pytest.approx(0.1)


def test_warmup_rises_to_one_and_hands_over():
    schedule = LinearWarmup(4, Step(1, 0.5))
    assert [schedule.factor(step, 0) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 0.5]


def test_plateau_falls_after_patience_and_remembers_across_a_checkpoint():
    first = Plateau(gamma=0.1, patience=1)
    assert [first.observe(metric) for metric in (0.70, 0.71, 0.71)] == [False, False, False]
    second = Plateau(gamma=0.1, patience=1)
    second.load_state(first.state())
    assert second.observe(0.70)
    assert second.factor(0, 0) == pytest.approx(0.1)


def test_plateau_of_a_loss_falls_when_it_rises():
    schedule = Plateau(gamma=0.5, patience=0, higher_is_better=False)
    assert not schedule.observe(0.5)
    assert not schedule.observe(0.4)
    assert schedule.observe(0.45)


def test_warmup_passes_the_metric_on():
    schedule = LinearWarmup(1, Plateau(gamma=0.5, patience=0))
    schedule.observe(0.7)
    assert schedule.observe(0.6)
    assert schedule.factor(10, 0) == 0.5
    assert Constant().factor(3, 1) == 1.0
