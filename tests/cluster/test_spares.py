"""Servers that stand by, and what becomes of them when another one is lost or everything is started again."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.cluster.process import Command
from tests.cluster.running import Running, cluster
from tests.cluster.test_scaling import SAMPLES, check_ledger, checkpoint, scale, start

PAUSE = 0.01


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a trainer of `sync` comes to when no server is lost."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with cluster(folder, samples=SAMPLES) as running:
        start(running, "sync", pservers=2, trainers=1)
        running.end()
    return checkpoint(folder)


def kill(running: Running, index: int) -> None:
    """For good, as far as this process goes."""
    killed = running.pservers.pop(index)
    killed.kill()
    killed.wait()


def address_of(server: Command) -> str:
    return server.words.partition('"address": "')[2].partition('"')[0]


def buckets(status: dict[str, Any]) -> dict[str, int]:
    """By address, of those that live."""
    return {each["address"]: each["buckets"] for each in status["servers"] if each["is_live"]}


def is_trained_by(status: dict[str, Any], *servers: Command) -> bool:
    """Whether these hold the buckets, in the order of their indices."""
    by_index = [each["address"] for each in status["servers"] if each["is_live"] and each["buckets"]]
    return status["phase"] == "running" and by_index == [address_of(server) for server in servers]


@pytest.mark.timeout(300)
def test_a_spare_takes_the_place_of_a_server_that_is_killed(tmp_path, undisturbed):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "sync", pservers=2, trainers=1)
        spare = running.pserver()
        running.wait_for(lambda status: len(buckets(status)) == 3)
        taken = running.admin.snapshot(print)
        kill(running, 1)
        after = running.wait_for(lambda status: is_trained_by(status, running.pservers[0], spare))
        assert buckets(after) == {address_of(running.pservers[0]): 512, address_of(spare): 512}
        running.wait_for(lambda status: status["batches"] > taken["batches"])
        # What it writes from now on is in the files of the server that it is.
        running.admin.snapshot(print)
        running.hurry()
        running.end()
        check_ledger(running)
        assert "pserver.placed index=2" in spare.words
        assert "pserver.placed index=1" in spare.words
        assert "coordinator.spare_taken index=1 spare=2" in running.pservers[0].words
    assert checkpoint(tmp_path) == undisturbed


@pytest.mark.timeout(300)
def test_a_replacement_that_comes_before_the_loss_is_known_takes_the_place(tmp_path):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "async", pservers=2, trainers=1)
        running.pservers[1].kill(signal.SIGSTOP)  # it may still come back
        other = running.pserver()
        running.wait_for(lambda status: status["phase"] == "running" and len(buckets(status)) == 3)
        kill(running, 1)
        running.wait_for(lambda status: is_trained_by(status, running.pservers[0], other))
        running.hurry()
        running.end()
        check_ledger(running)


@pytest.mark.timeout(300)
def test_a_lost_server_that_comes_back_to_a_place_that_is_taken_is_a_spare(tmp_path):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "async", pservers=2, trainers=1)
        spare = running.pserver()
        running.wait_for(lambda status: len(buckets(status)) == 3)
        kill(running, 1)
        running.wait_for(lambda status: is_trained_by(status, running.pservers[0], spare))
        late = running.pserver("--index", "1")
        running.wait_for(lambda status: buckets(status).get(address_of(late)) == 0)
        kill(running, 1)
        running.wait_for(lambda status: is_trained_by(status, running.pservers[0], late))
        running.hurry()
        running.end()
        check_ledger(running)


@pytest.mark.timeout(300)
def test_a_scaled_run_that_is_started_anew_goes_on_with_the_servers_that_are_started(tmp_path):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "async", pservers=2, trainers=1)
        running.pserver()
        scale(running, 3)
        for each in (*running.trainers, *running.pservers):
            each.kill()
    with cluster(tmp_path, samples=SAMPLES) as running:
        begin_again(running, gather_s=2)
        running.end()
        assert "coordinator.goes_on servers=2 before=3" in running.pservers[0].words
        check_ledger(running)


@pytest.mark.timeout(300)
def test_a_coordinator_alone_comes_back_to_the_servers_that_the_run_was_scaled_to(tmp_path):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "async", pservers=2, trainers=1)
        running.pserver()
        scale(running, 3)
        others, port = running.pservers[1:], running.address.rpartition(":")[2]
        kill(running, 0)
        running.address, running.pservers = "", []
        first = running.pserver("--index", "0", "--pservers", "2", "--port", port)
        running.pservers += others
        running.wait_for(lambda status: is_trained_by(status, first, *others))
        running.hurry()
        running.end()
        check_ledger(running)


def begin_again(running: Running, gather_s: int) -> None:
    """As it was started the first time."""
    running.pserver("--index", "0", "--pservers", "2", "--gather", str(gather_s))
    running.pserver("--index", "1")
    running.trainer("runner.0.distribute_strategy=async", "runner.0.worker_num=1", "runner.0.epochs=2")
