"""Jobs as they are found on a cluster."""

from __future__ import annotations

import pytest

from clickmill.errors import NotFoundError, StateError
from clickmill.jobs.delete import delete_job
from clickmill.jobs.job import find_job, list_jobs
from clickmill.kube import kinds

from .objects import job_object, plan, submitted


@pytest.mark.parametrize(
    ("volcano", "phase", "is_over"),
    [
        ("Pending", "Pending", False), ("Running", "Running", False), ("Restarting", "Restarting", False),
        ("Completing", "Completing", False), ("Completed", "Completed", True), ("Failed", "Failed", True),
        ("Terminated", "Failed", True), ("Aborted", "Stopped", True), ("Novel", "Unknown", False),
    ],
)  # fmt: skip
def test_phases_of_volcano_are_few_words_of_ours(state, cluster, volcano, phase, is_over):
    state.add(job_object(plan(trainers=3), phase=volcano, retryCount=2))
    job = find_job(cluster, "ctr")
    assert (job.phase, job.is_over, job.num_retries, job.max_retries) == (phase, is_over, 2, 5)
    assert {role: (size.replicas, size.min_available) for role, size in job.roles.items()} == {
        "pserver": (2, 2),
        "trainer": (3, 1),
    }
    assert (job.queue, job.num_pods, job.is_collective) == ("default", 5, False)


def test_a_pod_that_is_made_anew_does_not_make_the_job_wait_for_room(state, cluster):
    state.add(job_object(plan(), phase="Pending", running=3, retryCount=1))
    assert find_job(cluster, "ctr").phase == "Restarting"


def condition(kind: str) -> dict[str, str]:
    moment = "2026-01-31T09:00:00Z"
    return {
        "type": kind,
        "status": "True",
        "reason": "Because",
        "message": "of that",
        "lastTransitionTime": moment,
    }


@pytest.mark.parametrize(
    ("pserver", "trainer", "phase"),
    [
        ({}, {}, "Pending"),
        ({"ready": 1}, {}, "Running"),
        ({"ready": 2}, {"conditions": [condition("Complete")]}, "Completing"),
        ({"conditions": [condition("Complete")]}, {"conditions": [condition("Complete")]}, "Completed"),
        ({"ready": 2}, {"conditions": [condition("Failed")]}, "Failed"),
    ],
)
def test_the_phase_of_plain_jobs_is_that_of_both(state, cluster, pserver, trainer, phase):
    *_, servers, trainers = submitted(plan(scheduler="default"))
    state.add({**servers, "status": pserver}, {**trainers, "status": trainer})
    job = find_job(cluster, "ctr")
    assert (job.phase, job.is_volcano, job.queue) == (phase, False, None)
    assert list(job.roles) == ["pserver", "trainer"]
    if phase == "Failed":
        assert job.message == "Because of that"


def test_failures_of_plain_jobs_are_those_of_the_worse_one(state, cluster):
    *_, servers, trainers = submitted(plan(scheduler="default"))
    state.add({**servers, "status": {"failed": 3}}, {**trainers, "status": {"failed": 3}})
    job = find_job(cluster, "ctr")
    assert (job.num_retries, job.max_retries) == (3, 5)


def test_what_is_left_of_a_job_tells_what_became_of_it(state, cluster):
    state.add(*submitted(plan()))
    state.remove(kinds.VOLCANO_JOB, "ctr")
    assert find_job(cluster, "ctr").phase == "Stopped"
    state.remove(kinds.CONFIG_MAP, "ctr-package")
    assert find_job(cluster, "ctr").phase == "Deleted"
    state.remove(kinds.CLAIM, "ctr-output")
    with pytest.raises(NotFoundError):
        find_job(cluster, "ctr")


def test_a_job_that_is_not_there_is_told_with_the_nearest_name(state, cluster):
    state.add(job_object(plan("ctr-daily")))
    with pytest.raises(NotFoundError, match="no job `ctr-dayly`") as caught:
        find_job(cluster, "ctr-dayly")
    assert caught.value.hint == "did you mean `ctr-daily`?"


@pytest.mark.parametrize("name", ["My_Job", "007"])
def test_a_name_as_backend_yaml_has_it_is_told_with_that_on_kubernetes(state, cluster, name):
    there = {"My_Job": "my-job", "007": "job-007"}[name]
    state.add(job_object(plan(there)))
    for ask in (find_job, delete):
        with pytest.raises(NotFoundError, match=f"no job `{name}`") as caught:
            ask(cluster, name)
        assert caught.value.hint == f"on Kubernetes the job of that name is `{there}`"


def delete(cluster, name):
    delete_job(cluster, name, [].append, is_output_deleted=False)


def test_a_job_that_we_have_not_made_is_left_alone(state, cluster):
    item = job_object(plan())
    del item["metadata"]["labels"]["app.kubernetes.io/managed-by"]
    state.add(item)
    with pytest.raises(StateError, match="was not made by"):
        find_job(cluster, "ctr")
    assert list_jobs(cluster) == []


def test_all_jobs_are_listed_once(state, cluster):
    state.add(*submitted(plan("first"), phase="Running"))
    state.add(*submitted(plan("second", scheduler="default")))
    state.add(*[item for item in submitted(plan("third")) if item["kind"] == "ConfigMap"])
    assert [(job.name, job.phase) for job in list_jobs(cluster)] == [
        ("first", "Running"),
        ("second", "Pending"),
        ("third", "Stopped"),
    ]
