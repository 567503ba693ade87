"""Whom a run waits for, in words for those who look after a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clickmill.cli.job_pages import _training_lines
from clickmill.jobs.coordinator import training_of
from clickmill.jobs.job import find_job
from clickmill.jobs.pods import list_pods
from clickmill.jobs.waits import waiting_reasons, waits_of

from . import scripted
from .objects import job_object, plan, running

LOST = scripted.wait("server", "pserver 1 (10.0.0.2:30240)", 60, member="pserver 1", lost_s=60)
AT_FENCE = scripted.wait("fence", "trainer 1 to come to fence 39", 200, member="trainer 1")
ASKED_JUST_NOW = AT_FENCE | {"for_s": 1}


def trains(samples_per_s: float) -> list[dict[str, Any]]:
    return [{"statistics": {"samples_per_s": samples_per_s}}]


def test_the_command_that_starts_a_server_by_hand_is_not_told_of_pods():
    (wait,) = waits_of(scripted.running(waiting=[LOST | {"advice": "`clickmill pserver` starts one"}]))
    assert wait.words == LOST["words"]


@pytest.mark.parametrize(("samples_per_s", "number"), [(0.0, 1), (900.0, 0)])
def test_a_run_that_trains_waits_for_no_more_trainers(samples_per_s: float, number: int):
    more = scripted.wait("more_trainers", "more trainers; 1 of 4 are here", 3)
    assert len(waits_of(scripted.running(waiting=[more], trainers=trains(samples_per_s)))) == number


def test_trainers_that_have_just_been_asked_to_a_fence_are_not_waited_for():
    told_all = [ASKED_JUST_NOW, AT_FENCE, LOST]
    found = training_of(scripted.running(waiting=told_all)).waiting
    assert [wait.words for wait in found] == [AT_FENCE["words"], LOST["words"]]


def moment(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("wait", "role", "created_s_ago", "is_advised"),
    [
        (LOST, "pserver", 3600, True),
        (LOST, "pserver", 20, False),  # it has come for the one that was lost
        (LOST | {"lost_s": 5}, "pserver", 3600, False),
        (AT_FENCE, "trainer", 3600, True),
        (AT_FENCE | {"for_s": 30}, "trainer", 3600, False),
        (scripted.wait("other", "the commit file of a snapshot", 3600), "pserver", 3600, False),
    ],
)
def test_a_pod_that_runs_and_does_not_its_part_may_be_deleted(
    state, cluster, wait, role, created_s_ago, is_advised
):
    made = plan()
    state.add(
        job_object(made, phase="Running"),
        running(made, role, 0),
        running(made, role, 1, created=moment(created_s_ago)),
    )
    waits = waits_of(scripted.running(waiting=[wait]))
    (reason,) = waiting_reasons(find_job(cluster, "ctr"), list_pods(cluster, "ctr"), waits)
    assert reason.words == wait["words"]
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
