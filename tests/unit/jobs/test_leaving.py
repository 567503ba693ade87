"""Jobs that are on their way out: told to stop, being deleted, or done with training."""

from __future__ import annotations

import copy
import io

import pytest
from rich.console import Console

from clickmill.cli.job_pages import status_page
from clickmill.errors import KubernetesError, StateError
from clickmill.jobs.job import find_job
from clickmill.jobs.scale import scale_job
from clickmill.jobs.status import TRAINING_OVER, job_status
from clickmill.jobs.stop import stop_job
from clickmill.kube import kinds

from .objects import ended, job_object, leaving, node, plan, running, submitted
from .stand_in import StandIn
from .test_orders import secret, started


def page(cluster) -> str:
    written = io.StringIO()
    Console(file=written, width=200).print(status_page(job_status(cluster, "ctr")))
    return written.getvalue()


def on_lost_node(state: StandIn) -> None:
    """A job whose only trainer does not end: its node does not answer."""
    made = plan(pservers=1, trainers=1)
    trainer = running(made, "trainer", 0, node="n2", conditions=[])
    state.add(*submitted(made, phase="Running"), trainer, node("n2", ready="Unknown"))
    state.held.add("ctr-trainer-0")


@pytest.mark.parametrize("scheduler", ["volcano", "default"])
def test_a_job_that_is_being_deleted_is_stopping(state, cluster, scheduler):
    made = plan(scheduler=scheduler)
    state.add(
        *(leaving(item) if "Job" in item["kind"] else item for item in submitted(made, phase="Running"))
    )
    state.add(running(made, "pserver", 0), secret())
    job = find_job(cluster, "ctr")
    assert (job.phase, job.is_over, job.is_leaving) == ("Stopping", False, True)
    assert "it is being stopped or deleted, and its pods are ending" in page(cluster)
    assert "nothing is known" not in page(cluster)


@pytest.mark.parametrize("numbers", [{"trainers": 3}, {"pservers": 3}])
def test_a_job_that_is_being_deleted_is_not_scaled(state, cluster, numbers):
    started(state)
    state.add(leaving(job_object(plan(), phase="Running")))
    before = copy.deepcopy(state.objects)
    with pytest.raises(StateError, match="is being stopped or deleted"):
        scale_job(cluster, "ctr", [].append, **numbers)
    assert state.objects == before


def test_a_job_that_is_being_stopped_is_waited_for_without_asking_its_coordinator(state, cluster):
    started(state)
    state.add(leaving(job_object(plan(), phase="Running")))
    told: list[str] = []
    stop_job(cluster, "ctr", told.append)
    assert told[0] == "job `ctr` is being stopped or deleted already"
    assert state.names(kinds.POD) == []


def test_who_waits_for_pods_of_a_lost_node_hears_of_it(state, cluster):
    on_lost_node(state)
    told: list[str] = []

    def tell(words: str) -> None:
        told.append(words)
        if "to end" in words:
            state.remove(kinds.POD, "ctr-trainer-0")

    stop_job(cluster, "ctr", tell, is_forced=True)
    assert told[-1] == ("waits for trainer 0 to end; node `n2` does not answer; on it is trainer 0")


def test_a_wait_for_pods_is_told_again(state, cluster, monkeypatch):
    monkeypatch.setattr("clickmill.jobs.workloads._TELL_AGAIN_S", 0.0)
    on_lost_node(state)
    told: list[str] = []

    def tell(words: str) -> None:
        told.append(words)
        if told.count(words) == 2:
            state.remove(kinds.POD, "ctr-trainer-0")

    stop_job(cluster, "ctr", tell, is_forced=True)
    assert len(told) == 2


def test_pods_that_do_not_end_are_told_with_their_node(state, cluster, monkeypatch):
    monkeypatch.setattr("clickmill.jobs.workloads.GONE_DEADLINE_S", 0.0)
    on_lost_node(state)
    with pytest.raises(KubernetesError, match=r"trainer 0; node `n2` does not answer") as caught:
        stop_job(cluster, "ctr", [].append, is_forced=True)
    assert "kubectl delete node n2" in (caught.value.hint or "")


def test_the_status_of_a_job_that_cannot_end_names_the_node(state, cluster):
    on_lost_node(state)
    state.add(leaving(job_object(plan(pservers=1, trainers=1), phase="Running")))
    (reason,) = job_status(cluster, "ctr").reasons
    assert (reason.kind, reason.words.partition(";")[0]) == ("node", "node `n2` does not answer")


@pytest.mark.parametrize("is_server_known", [False, True])
def test_the_silence_of_a_run_that_is_over_is_told_as_its_end(state, cluster, is_server_known):
    made = plan(pservers=1)
    state.add(*submitted(made, phase="Running"), secret())
    if is_server_known:
        state.add(ended(made, "pserver", 0, 0), running(made, "trainer", 0), running(made, "trainer", 1))
    else:
        state.add(running(made, "pserver", 0, created="2999-12-31T08:00:00Z", conditions=[]))
        state.add(*(ended(made, "trainer", index, 0) for index in range(2)))
    assert job_status(cluster, "ctr").silence == TRAINING_OVER
    assert "\ntraining is over, and the pods are ending\n" in page(cluster)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"deleted": "2026-01-31T09:00:00Z"}, "is on its way out"),
        ({"created": "2999-12-31T08:00:00Z"}, "does not answer any more"),
    ],
)
def test_a_pserver_0_that_has_answered_is_not_awaited_yet(state, cluster, more, words):
    made = started(state)
    state.add(secret(), running(made, "pserver", 0, **more))
    silence = job_status(cluster, "ctr").silence or ""
    assert words in silence
    assert "yet" not in silence
