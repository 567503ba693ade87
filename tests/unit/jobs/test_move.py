"""Buckets that move to other servers, and what becomes of them when something comes between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from clickmill.errors import DeadlineError, StateError
from clickmill.jobs.scale import scale_job
from clickmill.jobs.stop import stop_job
from clickmill.kube import kinds

from . import scripted
from .objects import job_object, leaving, plan, running, submitted
from .stand_in import StandIn
from .test_orders import replicas, secret, started

DONE = {"pass": 1, "units_done": 4}
"""Of two passes with four units each."""


@contextmanager
def trains(
    state: StandIn, on_order: Callable[[str, scripted.Coordinator], None], **status: Any
) -> Iterator[scripted.Coordinator]:
    """A job with one server that does as it is told."""
    state.add(secret())
    with scripted.scripted(scripted.running(**status), on_order) as told:
        state.ports["ctr-pserver-0"] = told.port
        yield told


def servers(state: StandIn) -> str:
    """That pods read when they start."""
    size = state.get(kinds.CONFIG_MAP, "ctr-size")
    assert size is not None
    return str(size["data"]["pservers"])


def test_an_order_that_went_with_pserver_0_is_told_and_its_servers_go(state, cluster):
    started(state)

    def forget(_order: str, coordinator: scripted.Coordinator) -> None:
        coordinator.status = scripted.running()

    with trains(state, forget), pytest.raises(StateError, match="pserver 0 was made again") as caught:
        scale_job(cluster, "ctr", [].append, pservers=3)
    assert "`clickmill job scale ctr --pservers 3" in (caught.value.hint or "")
    assert replicas(state)["pserver"] == (1, 1)


def test_a_pserver_0_that_comes_back_by_another_name_is_asked(state, cluster):
    made = plan(pservers=1, scheduler="default")
    state.add(*submitted(made), running(made, "pserver", 0, name="ctr-pserver-0"))

    def make_again(_order: str, coordinator: scripted.Coordinator) -> None:
        state.remove(kinds.POD, "ctr-pserver-0")
        del state.ports["ctr-pserver-0"]
        state.ports["ctr-pserver-0-again"] = coordinator.port
        state.add(running(made, "pserver", 0, name="ctr-pserver-0-again"))

    with trains(state, make_again), pytest.raises(StateError, match="pserver 0 was made again"):
        scale_job(cluster, "ctr", [].append, pservers=3)


@pytest.mark.parametrize(
    ("progress", "phase", "words"),
    [
        (DONE, "Completed", "pservers: the run has ended"),
        ({}, "Completed", "pservers: it was stopped meanwhile"),
        ({}, "Failed", "pservers: the run has failed"),
    ],
)
def test_a_run_that_ends_while_buckets_move_says_how(state, cluster, progress, phase, words):
    made = started(state)

    def end(_order: str, coordinator: scripted.Coordinator) -> None:
        coordinator.status = scripted.running(scaling_to=3, phase="ending", **progress)
        state.add(job_object(made, phase=phase))

    with trains(state, end), pytest.raises(StateError, match=words):
        scale_job(cluster, "ctr", [].append, pservers=3)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_job_that_is_stopped_while_buckets_move_was_stopped(state, cluster, is_gone):
    made = started(state)
    told: list[str] = []

    def stop(_order: str, _coordinator: scripted.Coordinator) -> None:
        del state.ports["ctr-pserver-0"]
        if is_gone:
            state.remove(kinds.VOLCANO_JOB, "ctr")
        else:
            state.add(leaving(job_object(made, phase="Running")))

    with trains(state, stop), pytest.raises(StateError, match="it was stopped meanwhile"):
        scale_job(cluster, "ctr", told.append, pservers=3)
    assert not [words for words in told if "not taken back" in words]


def test_who_is_interrupted_hears_what_goes_on_and_may_say_it_again(state, cluster):
    started(state)
    told: list[str] = []

    def interrupt(words: str) -> None:
        told.append(words)
        if words == "as you wish":
            raise KeyboardInterrupt

    def move(_order: str, coordinator: scripted.Coordinator) -> None:
        coordinator.status = scripted.running(scaling_to=3)

    with trains(state, move) as coordinator:
        with pytest.raises(KeyboardInterrupt):
            scale_job(cluster, "ctr", interrupt, pservers=3)
        assert "buckets may still move to 3 pservers; `clickmill job scale ctr --pservers 3" in told[-1]
        assert (servers(state), replicas(state)["pserver"]) == ("1", (3, 3))

        def arrive(words: str) -> None:
            if "already" in words:
                coordinator.status = scripted.running(num_servers=3)

        scale_job(cluster, "ctr", arrive, pservers=3)
    assert coordinator.orders == ["/scale?pservers=3"], "it refuses a second one"
    assert servers(state) == "3"


def test_servers_that_buckets_still_move_to_stay_when_time_is_up(state, cluster):
    started(state)

    def move(_order: str, coordinator: scripted.Coordinator) -> None:
        coordinator.status = scripted.running(scaling_to=3)

    with trains(state, move), pytest.raises(DeadlineError) as caught:
        scale_job(cluster, "ctr", [].append, pservers=3, deadline_s=0.0)
    assert "`clickmill job scale ctr --pservers 3" in (caught.value.hint or "")
    assert replicas(state)["pserver"] == (3, 3)


def test_a_stopped_job_keeps_the_servers_that_its_run_had(state, cluster):
    made = started(state)

    def obey(order: str, coordinator: scripted.Coordinator) -> None:
        ends = {"phase": "ending"} if order == "/stop" else {}
        coordinator.status = scripted.running(committed=8, num_servers=3, **ends)
        if ends:
            state.add(job_object(made, phase="Completed"))

    with trains(state, obey, num_servers=3):
        stop_job(cluster, "ctr", [].append)
    assert servers(state) == "3", "a scaling of before was interrupted"
