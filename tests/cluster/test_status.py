"""What a person sees of a cluster that trains."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request

import pytest

from tests.cluster.process import run
from tests.cluster.running import Running, cluster


def read(address: str, page: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{page}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def numbers(address: str) -> dict[str, float]:
    """Metrics by name and labels."""
    _, text = read(address, "/metrics")
    found = re.findall(r"^(clickmill\S+) (\S+)$", text, re.MULTILINE)
    return {key.removesuffix("{}"): float(value) for key, value in found}


def start(running: Running, trainers: int = 2) -> None:
    running.pserver("--index", "0", "--pservers", "2", "--metrics-port", "0", "--memory-budget", "1GB")
    running.pserver("--index", "1", "--metrics-port", "0", "--memory-budget", "1GB")
    assert read(str(running.metrics[0]), "/readyz")[0] == 503, "it holds nothing yet"
    for _ in range(trainers):
        running.trainer(f"runner.0.worker_num={trainers}", arguments=("--metrics-port", "0"))


def is_busy(status: dict) -> bool:
    """Both servers have been at work for a while, and the trainers have said how they are."""
    return (
        all(server["statistics"]["pushes_per_s"] > 0 for server in status["servers"])
        and len(status["trainers"]) == 2
        and all(trainer["statistics"]["samples_per_s"] > 0 for trainer in status["trainers"])
        and all(trainer["statistics"]["shares"] for trainer in status["trainers"])
    )


@pytest.mark.timeout(300)
def test_status_and_metrics_tell_the_same_of_a_cluster_at_work(tmp_path):
    with cluster(tmp_path, samples=6000, pause=0.02) as running:
        start(running)
        status = running.wait_for(is_busy)
        assert (status["phase"], status["strategy"]) == ("running", "async")
        assert [server["buckets"] for server in status["servers"]] == [512, 512]
        for server in status["servers"]:
            own = server["statistics"]
            assert own["rows"] > 0
            assert own["pulls"] > 0
            assert own["pulled_rows_per_s"] > own["pulls_per_s"] > 0
            assert 0.0 <= own["staleness_steps"] <= 8.0
            assert 0.0 < server["memory_share"] < 1.0
        shown = run(tmp_path, "ps", "status", "--coordinator", running.address)
        shown.succeed()
        assert "pserver 1" in shown.words
        assert "trainer 1" in shown.words
        taken = run(tmp_path, "cluster", "snapshot", "--coordinator", running.address, "--json")
        taken.succeed()
        snapshot = json.loads(taken.words.splitlines()[-1])["snapshot"]
        assert snapshot["committed"] is not None

        # Pages are made anew several times a second, not when they are asked for.
        coordinator, other = (str(address) for address in running.metrics)
        committed = "clickmill_cluster_snapshots_committed_total"
        parts = "clickmill_pserver_parts_written_total"
        assert running.pservers[0].wait_until(lambda: numbers(coordinator)[committed] == 1)
        assert running.pservers[1].wait_until(lambda: numbers(other)[parts] == 1)
        first, second = numbers(coordinator), numbers(other)
        assert first["clickmill_pserver_rows"] > 0
        assert second["clickmill_pserver_pushes_total"] > 0
        assert second["clickmill_pserver_received_bytes_total"] > 0
        assert 0 < second["clickmill_pserver_budget_ratio"] < 1
        assert [each["clickmill_pserver_buckets"] for each in (first, second)] == [512, 512]
        assert first['clickmill_cluster_members{role="trainer"}'] == 2
        assert first['clickmill_cluster_members{role="pserver"}'] == 2
        assert "clickmill_cluster_members" not in "".join(second), "only the coordinator knows them"
        told = json.loads(read(coordinator, "/status")[1])
        assert [server["buckets"] for server in told["servers"]] == [512, 512]
        assert 0.0 < told["metrics"]["numbers"]["auc"] < 1.0
        assert read(other, "/status")[0] == 404
        for address in running.metrics:
            assert read(str(address), "/readyz")[0] == 200
        for trainer in running.trainers:
            (address,) = re.findall(r"trainer.monitored address=(\S+)", trainer.words)
            assert read(address, "/readyz")[0] == 200
            found = numbers(address)
            assert found["clickmill_trainer_samples_total"] > 0
            assert found["clickmill_trainer_sent_bytes_total"] > 0
            assert found['clickmill_trainer_stage_seconds_total{stage="compute"}'] > 0
        running.hurry()
        running.end()


@pytest.mark.timeout(300)
def test_a_trainer_alone_never_updates_rows_that_have_changed_since_it_read_them(tmp_path):
    with cluster(tmp_path, pause=0.02) as running:
        running.pserver("--index", "0")
        running.trainer()
        status = running.wait_for(lambda status: status["servers"][0]["statistics"]["pushes_per_s"] > 0)
        assert status["servers"][0]["statistics"]["staleness_steps"] == 0.0
        running.hurry()
        running.end()


def test_a_coordinator_that_is_not_there_is_named(tmp_path):
    finished = run(tmp_path, "ps", "status", "--coordinator", "127.0.0.1:9", "--json")
    assert finished.wait() == 1
    assert "127.0.0.1:9" in json.loads(finished.words.splitlines()[-1])["error"]["message"]
