"""`clickmill report` names the stage that was slowed on purpose."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.process import run
from tests.cluster.proxy import free_port, proxy
from tests.cluster.running import Running, cluster

READER = """
import json
import threading


class Reader:
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        for path in self.files:
            with open(path) as lines:
                for number, line in enumerate(lines):
                    if number % 20 == 0:
                        threading.Event().wait(0.05)
                    words = dict(word.split(":") for word in line.split())
                    words["click"], words["price"] = float(words["click"]), float(words["price"])
                    yield words
"""
SLOW = 0.05


def report(folder: Path) -> dict[str, Any]:
    finished = run(folder, "report", str(folder / "run"), "--json")
    finished.succeed()
    found: dict[str, Any] = json.loads(finished.words.splitlines()[-1])
    page = Path(found["report"]).read_text()
    assert f"Bound by {found['bound']}" in page
    return found


def shares_of(trainer: dict[str, Any]) -> list[str]:
    """Stages that half of a trainer's time goes to, of late."""
    return [stage for stage, share in trainer["statistics"]["shares"].items() if share > 0.5]


def train(running: Running, *overrides: str, trainers: int = 1) -> dict[str, Any]:
    for _ in range(trainers):
        running.trainer(f"runner.0.worker_num={trainers}", *overrides)
    running.end()
    return report(running.folder)


@pytest.fixture
def slow_reader(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "reader.py").write_text(READER)
    return ("dataset.0.format=null", f"dataset.0.data_converter={tmp_path}/reader.py")


@pytest.mark.timeout(200)
@pytest.mark.parametrize("strategy", ["async", "geo"])
def test_a_slow_reader_bounds_a_cluster(tmp_path, slow_reader, strategy):
    with cluster(tmp_path, samples=1000) as running:
        running.pserver("--index", "0")
        found = train(running, *slow_reader, f"runner.0.distribute_strategy={strategy}")
    assert found["bound"] == "read", found
    assert found["shares"]["read"] > 0.5


@pytest.mark.timeout(200)
def test_a_slow_reader_bounds_a_process(tmp_path, slow_reader):
    with cluster(tmp_path, samples=1000):
        sets = [word for override in slow_reader for word in ("--set", override)]
        run(tmp_path, "train", "-m", str(tmp_path / "config.yaml"), *sets).succeed()
    assert report(tmp_path)["bound"] == "read"


@pytest.mark.timeout(200)
def test_a_slow_model_bounds_a_cluster(tmp_path):
    with cluster(tmp_path, samples=1000, pause=SLOW) as running:
        running.pserver("--index", "0")
        assert train(running)["bound"] == "compute"


@pytest.mark.timeout(200)
@pytest.mark.parametrize("pservers", [1, 2])
@pytest.mark.parametrize(("slow", "bound"), [("there", "push"), ("back", "pull")])
def test_a_slow_network_bounds_by_its_direction(tmp_path, pservers, slow, bound):
    with cluster(tmp_path, samples=1000) as running:
        port = free_port()
        with proxy(f"127.0.0.1:{port}", slow, SLOW) as between:
            announced = ("--port", str(port), "--announce", between.address)
            running.pserver("--index", "0", "--pservers", str(pservers), *announced)
            running.address = f"127.0.0.1:{port}"  # what is asked of the coordinator goes straight
            for index in range(1, pservers):
                running.pserver("--index", str(index))
            found = train(running)
    assert found["bound"] == bound, found


@pytest.mark.timeout(200)
def test_a_stopped_peer_bounds_sync_by_waiting(tmp_path):
    with cluster(tmp_path, samples=2000, pause=0.005) as running:
        running.pserver("--index", "0", "--dead-after", "12")
        for _ in range(2):
            running.trainer("runner.0.worker_num=2", "runner.0.distribute_strategy=sync")
        before = running.wait_for(lambda status: status["batches"] > 10)
        assert len(before["trainers"]) == 2
        stopped = running.trainers[1]
        stopped.kill(signal.SIGSTOP)
        running.wait_for(lambda status: any("wait" in shares_of(each) for each in status["trainers"]))
        running.wait_for(lambda status: len(status["trainers"]) == 1)  # the other was given up
        stopped.kill(signal.SIGKILL)
        running.hurry()
        running.trainers[0].succeed()
        running.pservers[0].succeed()
    found = report(tmp_path)
    (waited,) = (own for name, own in found["trainers"].items() if name.startswith("t0"))
    assert waited["bound"] == "wait", found
    assert found["bound"] == "wait", found


@pytest.mark.timeout(200)
def test_a_lost_server_is_no_trainer_that_the_others_wait_for(tmp_path):
    with cluster(tmp_path, samples=2000, pause=0.01) as running:
        running.pserver("--index", "0", "--pservers", "2")
        running.pserver("--index", "1")
        for _ in range(2):
            running.trainer("runner.0.worker_num=2", "runner.0.distribute_strategy=sync")
        before = running.wait_for(lambda status: status["batches"] > 10)
        running.pservers.pop().kill()
        running.wait_for(
            lambda status: (
                {"lost", "reload"} & {own for each in status["trainers"] for own in shares_of(each)}
            )
        )
        running.pserver("--index", "1")
        running.wait_for(lambda status: status["epoch"] > before["epoch"] and status["phase"] == "running")
        running.hurry()
        running.end()
    found = report(tmp_path)
    assert set(found["trainers"]) == {"t0", "t1"}
    assert all(own["seconds"]["reload"] > 0 for own in found["trainers"].values()), found
    assert found["awaited"] is None


@pytest.mark.timeout(200)
def test_too_little_data_to_share_is_named_and_not_taken_for_waiting(tmp_path):
    with cluster(tmp_path, samples=1000, pause=SLOW) as running:
        running.pserver("--index", "0")
        found = train(running, "runner.0.cluster.lease_bytes=10000000", trainers=3)
    assert found["has_too_little_data"], found
    assert found["units"] == 1
    assert found["bound"] == "compute", found
    assert found["awaited"] is None
