"""Buckets move to another number of servers while trainers train: nothing is lost, nothing trained twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import fingerprint
from tests.cluster.process import run
from tests.cluster.running import Running, cluster

SAMPLES, PAUSE = 6000, 0.01


def committed(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run/snapshots/committed.json").read_text())["content"]
    return found


def checkpoint(folder: Path) -> dict[str, Any]:
    """What a run has learnt, bit for bit."""
    (newest,) = sorted((folder / "run/checkpoints").glob("[0-9]*"))[-1:]
    found = fingerprint(newest)
    return {key: found[key] for key in ("dense", "optimizer", "tables")}


def start(running: Running, strategy: str, *, pservers: int, trainers: int) -> None:
    running.pserver("--index", "0", "--pservers", str(pservers))
    for index in range(1, pservers):
        running.pserver("--index", str(index))
    for _ in range(trainers):
        running.trainer(
            f"runner.0.distribute_strategy={strategy}", f"runner.0.worker_num={trainers}", "runner.0.epochs=2"
        )
    running.wait_for(lambda status: status["batches"] > 5)


def scale(running: Running, pservers: int) -> dict[str, Any]:
    """As a person does it."""
    folder = running.folder / f"scale-{pservers}"
    folder.mkdir()
    finished = run(
        folder, "cluster", "scale", "--pservers", str(pservers), "--coordinator", running.address, "--json"
    )
    finished.succeed()
    status: dict[str, Any] = json.loads(finished.words.splitlines()[-1])
    return status


def check_ledger(running: Running) -> None:
    history = committed(running.folder)["run"]["history"]
    assert [entry["samples"] for entry in history] == [SAMPLES, SAMPLES], running.words
    assert [entry["train"]["count"] for entry in history] == [SAMPLES, SAMPLES]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two trainers of `sync` come to when nobody scales."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with cluster(folder, samples=SAMPLES) as running:
        start(running, "sync", pservers=1, trainers=2)
        running.end()
    return checkpoint(folder)


@pytest.mark.timeout(300)
def test_sync_comes_to_the_same_bits_when_servers_come_and_go(tmp_path, undisturbed):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "sync", pservers=1, trainers=2)
        running.pserver()
        running.pserver()
        before = running.wait_for(lambda status: len(status["servers"]) == 3)
        assert [server["buckets"] for server in before["servers"]] == [1024, 0, 0]
        after = scale(running, 3)
        assert after["phase"] == "running", "training went on"
        assert [server["buckets"] for server in after["servers"]] == [342, 341, 341]
        assert all(server["statistics"]["rows"] > 0 for server in after["servers"]), "as they are now"
        running.wait_for(lambda status: status["batches"] > after["batches"])
        smaller = scale(running, 2)
        assert [server["buckets"] for server in smaller["servers"]] == [512, 512]
        running.pservers[2].succeed()  # it is not needed any more, while the others go on
        running.wait_for(lambda status: status["batches"] > smaller["batches"])
        running.hurry()
        running.end()
        check_ledger(running)
    assert checkpoint(tmp_path) == undisturbed


@pytest.mark.timeout(300)
def test_async_trains_every_sample_once_when_servers_come_and_go(tmp_path):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "async", pservers=2, trainers=2)
        running.pserver()
        scale(running, 3)
        after = scale(running, 1)
        assert [server["buckets"] for server in after["servers"]] == [1024]
        for gone in running.pservers[1:]:
            gone.succeed()
        running.hurry()
        running.end()
        check_ledger(running)


@pytest.mark.timeout(300)
def test_a_server_that_is_missing_is_waited_for_and_named(tmp_path):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "async", pservers=1, trainers=1)
        running.admin.scale(2, print, is_waiting=False)
        status = running.wait_for(lambda status: bool(status["waiting"]))
        assert "pserver 1, which has not registered yet" in status["waiting"][0]["words"]
        assert status["scaling_waits_for"] == [1]
        running.pserver()
        running.wait_for(lambda status: status["num_servers"] == 2)
        running.hurry()
        running.end()
        check_ledger(running)


@pytest.mark.timeout(300)
def test_a_wish_for_servers_that_never_come_is_taken_back(tmp_path):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "async", pservers=1, trainers=1)
        running.admin.scale(2, print, is_waiting=False)
        assert running.admin.status()["scaling_to"] == 2
        after = scale(running, 1)
        assert (after["scaling_to"], after["num_servers"]) == (None, 1)
        running.hurry()
        running.end()
        check_ledger(running)


@pytest.mark.timeout(300)
def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    with cluster(tmp_path, samples=SAMPLES, pause=PAUSE) as running:
        start(running, "async", pservers=1, trainers=1)
        taken = running.admin.snapshot(print)
        assert taken["snapshot"]["committed"] is not None
        last = running.admin.stop(print)
        assert last["samples"] > 0
        running.end()
        assert "stopped as asked; the run can be resumed" in running.words
    assert not committed(tmp_path)["is_over"]
    with cluster(tmp_path, samples=SAMPLES) as running:
        start(running, "async", pservers=1, trainers=1)
        running.end()
        check_ledger(running)


def test_servers_that_are_stopped_before_a_job_came_end_well(tmp_path):
    with cluster(tmp_path, samples=20) as running:
        running.pserver("--index", "0", "--pservers", "3")
        running.pserver("--index", "1")
        running.wait_for(lambda status: len(status["servers"]) == 2)
        assert running.admin.stop(print)["phase"] in {"ending", "stopped"}
        running.end()
        assert "stopped as asked before a job came" in running.words
