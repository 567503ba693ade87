"""Buckets that move to other servers, and what becomes of them when something comes between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from clickmill.errors import StateError
from clickmill.jobs.scale import scale_job
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
