"""Whom a run waits for, in words for those who look after a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clickmill.cli.job_pages import _training_lines
from clickmill.jobs.coordinator import training_of
from clickmill.jobs.job import find_job
from clickmill.jobs.pods import list_pods
from clickmill.jobs.waits import lasting, waiting_reasons, waits_of

from . import scripted
from .objects import job_object, plan, running

LOST = "waiting for pserver 1 (10.0.0.2:30240), lost 60 s ago; gives up in 240 s"
UNREGISTERED = "waiting for pserver 1, which has not registered yet; gives up in 9 s"
ADVICE = (
    "`clickmill pserver --coordinator 10.244.1.230:30240 --snapshots /output/x` starts one that takes this "
    "place, on any host"
)
AT_FENCE = "waiting for trainer 1 to come to fence 39; gives up in 400 s"
ASKED_JUST_NOW = "waiting for trainer 1 to come to fence 39; gives up in 599 s"


def trains(samples_per_s: float) -> list[dict[str, Any]]:
    return [{"statistics": {"samples_per_s": samples_per_s}}]


@pytest.mark.parametrize(
    ("told", "samples_per_s", "words"),
    [
        (
            f"{UNREGISTERED}; {ADVICE}",
            0.0,
            [UNREGISTERED],
        ),
        (
            "waiting for trainer 0 (trainer 1) to come to fence 39; gives up in 400 s",
            0.0,
            [AT_FENCE],
        ),
        (
            "waiting for more trainers; 1 of 4 are here; gives up in 27 s",
            0.0,
            ["waiting for more trainers; 1 of 4 are here; goes on with those in 27 s"],
        ),
        ("waiting for more trainers; 1 of 4 are here; gives up in 27 s", 900.0, []),
    ],
)
def test_waits_are_told_as_they_are_on_kubernetes(told: str, samples_per_s: float, words: list[str]):
    assert waits_of(scripted.running(waiting=[told], trainers=trains(samples_per_s))) == words


def test_trainers_that_have_just_been_asked_to_a_fence_are_not_waited_for():
    assert lasting([ASKED_JUST_NOW, AT_FENCE, LOST]) == (AT_FENCE, LOST)


def moment(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("words", "role", "created_s_ago", "is_advised"),
    [
        (LOST, "pserver", 3600, True),
        (LOST, "pserver", 20, False),  # it has come for the one that was lost
        (LOST.replace("60", "5"), "pserver", 3600, False),
        (AT_FENCE, "trainer", 3600, True),
        (AT_FENCE.replace("400", "570"), "trainer", 3600, False),
        ("waiting for the commit file of a snapshot", "pserver", 3600, False),
    ],
)
def test_a_pod_that_runs_and_does_not_its_part_may_be_deleted(
    state, cluster, words, role, created_s_ago, is_advised
):
    made = plan()
    state.add(
        job_object(made, phase="Running"),
        running(made, role, 0),
        running(made, role, 1, created=moment(created_s_ago)),
    )
    (reason,) = waiting_reasons(find_job(cluster, "ctr"), list_pods(cluster, "ctr"), [words])
    assert reason.words == words
    assert reason.remedy == (
        f"its pod runs; if it hangs, `kubectl delete pod ctr-{role}-1 -n team` has it made anew"
        if is_advised
        else None
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "500 samples, 900 samples/s"),
        ({"waiting": [ASKED_JUST_NOW]}, "500 samples, 900 samples/s"),
        ({"waiting": [AT_FENCE]}, "500 samples, stands still"),
        ({"phase": "gathering"}, "500 samples, stands still"),
        ({"phase": "gathering", "samples": 0, "trainers": []}, "0 samples, 0 samples/s"),
    ],
)
def test_a_run_that_stands_still_has_no_speed(changes: dict[str, Any], words: str):
    status = scripted.running(**{"trainers": trains(900.0), **changes})
    assert words in _training_lines(training_of(status))
