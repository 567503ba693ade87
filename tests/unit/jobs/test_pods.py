"""Pods in words."""

from __future__ import annotations

import json

import pytest

from clickmill.jobs.job import find_job
from clickmill.jobs.pods import current, list_pods, number_of_tries, pod_of

from .objects import container, ended, job_object, plan, pod, running

PLAN = plan()


@pytest.mark.parametrize(
    ("item", "state", "detail"),
    [
        (running(PLAN, "trainer", 0), "Running", ""),
        (pod(PLAN, "trainer", 0, node="n1"), "Starting", ""),
        (pod(PLAN, "trainer", 0), "Pending", ""),
        (
            pod(
                PLAN, "trainer", 0,
                conditions=[{"type": "PodScheduled", "status": "False", "message": "no\n room"}],
            ),
            "Pending",
            "no room",
        ),
        (
            pod(PLAN, "trainer", 0, **container(waiting={"reason": "ErrImagePull", "message": "no"})),
            "ErrImagePull",
            "no",
        ),
        (
            pod(PLAN, "trainer", 0, node="n1", **container(waiting={"reason": "ContainerCreating"})),
            "Starting",
            "",
        ),
        (ended(PLAN, "trainer", 0, 0), "Succeeded", ""),
        (ended(PLAN, "trainer", 0, 1), "Failed", ""),
        (
            pod(PLAN, "trainer", 0, node="n1", phase="Failed", reason="Evicted", message="disk pressure"),
            "Evicted",
            "disk pressure",
        ),
        (running(PLAN, "trainer", 0, deleted="2026-01-31T08:10:00Z"), "Terminating", ""),
    ],
)  # fmt: skip
def test_states_are_what_people_look_for(item, state, detail):
    item["metadata"]["uid"] = "u"
    found = pod_of(item)
    assert (found.state, found.detail, found.title) == (state, detail, "trainer 0")


@pytest.mark.parametrize(
    ("code", "message", "more", "words", "hint"),
    [
        (
            3,
            "error: trainer 0: train.tsv:7: 3 columns\nhint: look at it",
            {},
            "ended with exit code 3, samples that cannot be read: trainer 0: train.tsv:7: 3 columns",
            "look at it",
        ),
        (
            2,
            'x\n{"error": {"kind": "ConfigError", "message": "no such key", "hint": "spell it"}}',
            {},
            "ended with exit code 2, wrong arguments or configuration: no such key",
            "spell it",
        ),
        (137, "", {"reason": "OOMKilled"}, "was killed for taking more memory than its limit", None),
        (139, "last line", {}, "was killed by SIGSEGV", None),
        (137, "conds=0\n2026-11-18 22:47:54,504 - INFO - at work", {}, "was killed by SIGKILL", None),
        (
            1,
            "Traceback:\n  raise ValueError(1)\nValueError: no\n2026-11-18 22:47:54,504 - INFO - x",
            {},
            "ended with exit code 1, it failed while running: ValueError: no",
            None,
        ),
        (
            1,
            "2026-11-18 22:47:54,504 - ERROR - the disk is full\n2026-11-18 22:47:54,504 - INFO - x",
            {},
            "ended with exit code 1, it failed while running: the disk is full",
            None,
        ),
        (
            128,
            "exec: clickmill: not found",
            {"reason": "StartError"},
            "ended with exit code 128: exec: clickmill: not found",
            None,
        ),
        (127, "", {}, "ended with exit code 127, its program is not in the image", None),
    ],
)
def test_last_words_are_an_error_with_its_hint(code, message, more, words, hint):
    item = ended(PLAN, "trainer", 0, code, message, **more)
    item["metadata"]["uid"] = "u"
    ending = pod_of(item).ending
    assert ending is not None
    assert (ending.words, ending.hint) == (words, hint)


def test_what_a_log_says_of_an_end_is_cut(state, cluster):
    state.add(ended(PLAN, "trainer", 0, 1, f"RuntimeError: {'x' * 500}"))
    ending = list_pods(cluster, "ctr")[0].ending
    assert ending is not None
    assert len(ending.message) == 200
    assert ending.message.endswith("x...")


@pytest.mark.parametrize(
    ("retries", "words"),
    [
        (0, ""),
        (1, "started again once, of 5 allowed"),
        (5, "started again 5 times, of 5 allowed"),
        (6, "started again 6 times, more than the 5 that are allowed"),
    ],
)
def test_restarts_are_told_with_their_limit(state, cluster, retries, words):
    state.add(job_object(PLAN, phase="Running", retryCount=retries))
    assert number_of_tries(find_job(cluster, "ctr")) == words


def test_pods_come_by_role_and_number_the_newest_of_a_number_first(state, cluster):
    made = plan(scheduler="default")
    state.add(
        running(made, "trainer", 10, name="ctr-trainer-10-x"),
        running(made, "trainer", 2, name="ctr-trainer-2-x", created="2026-01-31T08:20:00Z"),
        ended(made, "trainer", 2, 1, name="ctr-trainer-2-a"),
        running(made, "pserver", 0, name="ctr-pserver-0-x"),
    )
    found = list_pods(cluster, "ctr")
    assert [pod.name for pod in found] == [
        "ctr-pserver-0-x",
        "ctr-trainer-2-x",
        "ctr-trainer-2-a",
        "ctr-trainer-10-x",
    ]
    assert [pod.title for pod in current(found)] == ["pserver 0", "trainer 2", "trainer 10"]


def test_readers_are_no_pods_of_the_job(state, cluster):
    reader = running(PLAN, "trainer", 0, name="ctr-reader-1a2b")
    reader["metadata"]["labels"]["clickmill.io/role"] = "reader"
    state.add(reader, running(PLAN, "trainer", 0))
    assert [pod.name for pod in list_pods(cluster, "ctr")] == ["ctr-trainer-0"]


def test_a_summary_is_read_from_a_trainer_that_has_ended_well(state, cluster):
    from clickmill.jobs.summary import run_summary

    told = json.dumps({"passes": 2, "samples": 5000, "auc": 0.77})
    state.add(ended(PLAN, "pserver", 0, 0, "done"), ended(PLAN, "trainer", 0, 0, told))
    assert run_summary(list_pods(cluster, "ctr")) == {"passes": 2, "samples": 5000, "auc": 0.77}
    assert run_summary(list_pods(cluster, "other")) is None
