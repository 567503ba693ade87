"""A job from its first pod to its model, with `clickmill job` as it is typed, on a real cluster."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from clickmill.kube.client import Cluster

from .conftest import DEADLINE_S, Kubectl, poll
from .submitted import LONG, Job, trained


@pytest.fixture(params=["volcano", "default"])
def job(request: pytest.FixtureRequest, tmp_path: Path, image: str, namespace: str, volcano: None) -> Job:
    found = Job(tmp_path, image, namespace, request.param)
    found.make_log(2000)
    return found


@pytest.mark.timeout(1800)
def test_a_job_is_watched_scaled_fetched_stopped_and_goes_on(job: Job, tmp_path: Path) -> None:
    job.submit(epochs=LONG)
    status = job.await_status(
        lambda status: trained(status) > 4000 and status["training"]["samples_per_s"],
        "two passes and a speed",
    )
    assert (status["phase"], status["training"]["phase"]) == ("Running", "running")
    assert 0.0 < status["auc"] <= 1.0
    assert [pod["role"] for pod in status["pods"]] == ["pserver", "trainer", "trainer"]

    assert job.job("scale", "--trainers", "3")["trainers"] == {"before": 2, "now": 3}
    job.await_status(lambda status: status["training"]["num_trainers"] == 3, "three trainers")
    assert job.job("scale", "--pservers", "2")["pservers"] == {"before": 1, "now": 2}
    status = job.await_status(lambda status: len(status["pods"]) == 5, "five pods")
    assert status["training"]["num_pservers"] == 2
    assert job.job("scale", "--pservers", "1", "--trainers", "1")["pservers"] == {"before": 2, "now": 1}
    job.await_status(lambda status: len(status["pods"]) == 2, "two pods")

    fetched = job.job("fetch", "-o", "model")
    assert fetched["checkpoint"]["step"] > 0
    checkpoint = fetched["paths"][-1]
    told = json.loads(job.run("evaluate", "-m", "config.yaml", "--checkpoint", checkpoint, "--json"))
    assert told["samples"] == 2000

    before = job.job("status")
    stopped = job.job("stop")
    assert stopped["samples"] >= before["samples"]
    assert stopped["snapshot"] is not None
    assert job.job("status")["phase"] == "Stopped"
    assert json.loads(job.run("job", "ls", "-n", job.namespace, "--json"))[0]["phase"] == "Stopped"
    assert job.job("fetch", "-o", "stopped")["paths"]

    job.submit(epochs=LONG, trainers=1)
    status = job.await_status(lambda status: trained(status) > 0, "it to go on")
    assert trained(status) >= stopped["samples"]
    job.job("delete", "--with-output")
    assert json.loads(job.run("job", "ls", "-n", job.namespace, "--json")) == []


@pytest.mark.timeout(1200)
def test_logs_are_followed_over_a_restart_to_the_end(job: Job, kubectl: Kubectl) -> None:
    job.submit(epochs=LONG, trainers=1)
    # To a file: who does not read from a pipe keeps the command from hearing of the second life.
    heard = job.folder / "heard"
    with heard.open("w") as file, job.start("logs", "ctr", "-f", "--json", stdout=file) as following:
        job.await_status(lambda status: trained(status) > 2000, "a pass")
        trainer = next(pod["name"] for pod in job.job("status")["pods"] if pod["role"] == "trainer")
        kubectl("exec", trainer, "--", "sh", "-c", "kill -9 -1 || true")
        status = job.await_status(
            lambda status: (
                [pod["restarts"] for pod in status["pods"]] == [0, 1]
                and trained(status)
                and status["pods"][1]["ready"]
            ),
            "the trainer to be back",
        )
        crash = next(reason for reason in status["reasons"] if reason["kind"] == "crash")
        assert "trainer 0 has failed once" in crash["words"]
        before = trained(status)
        job.await_status(lambda status: trained(status) > before + 2000, "its second life to train")
        job.job("stop")
        assert following.wait(DEADLINE_S) == 0
    lines = [json.loads(line) for line in heard.read_text().splitlines()]
    started = [line for line in lines if "role.started role=trainer 0" in line["line"]]
    assert len(started) == 2, "of the first life and of the second"
    assert {line["role"] for line in lines} == {"pserver 0", "trainer 0"}
    assert len({(line["pod"], line["time"], line["line"]) for line in lines}) == len(lines), "none twice"


@pytest.mark.timeout(1200)
def test_a_job_that_fails_says_why_and_ends_with_that_code(job: Job, cluster: Cluster) -> None:
    job.write()
    path = job.folder / "config.yaml"
    path.write_text(path.read_text().replace("log.tsv", "absent.tsv"))
    job.run("submit", "-m", "config.yaml", "-b", "backend.yaml")
    job.run("job", "wait", "ctr", "-n", job.namespace, code=3)
    status = job.job("status", code=3)
    assert "absent.tsv" in status["reasons"][0]["words"]
    assert "absent.tsv" in job.run("job", "logs", "ctr", "-n", job.namespace)
    following = job.start("logs", "ctr", "-f")
    following.communicate(timeout=DEADLINE_S)
    assert following.returncode == 3


@pytest.mark.timeout(1200)
def test_a_job_without_enough_memory_says_so_when_its_pods_are_gone(job: Job) -> None:
    job.submit(trainers=1, memory="96Mi")
    status = job.await_status(
        lambda status: any("memory" in reason["words"] for reason in status["reasons"]), "the reason"
    )
    reason = next(reason for reason in status["reasons"] if "memory" in reason["words"])
    assert reason["kind"] == "crash"
    assert "kubernetes.resources.trainer.memory_limit" in reason["remedy"]


@pytest.mark.timeout(1200)
def test_a_fetch_that_is_interrupted_leaves_no_pod_and_goes_on(job: Job, cluster: Cluster) -> None:
    job.submit(trainers=1, epochs=2)
    job.job("wait")
    with job.start("fetch", "ctr", "-o", "model") as fetching:
        poll(lambda: _readers(cluster, job), "the pod that reads")
        os.kill(fetching.pid, signal.SIGINT)
        assert fetching.wait(DEADLINE_S) == 130
    poll(lambda: not _readers(cluster, job), "the pod to be gone")
    assert not (job.folder / "model" / "checkpoints").exists()
    assert job.job("fetch", "-o", "model")["checkpoint"]["is_pass_end"]
    assert job.job("fetch", "-o", "model")["files"] == 0, "it is here already"


def _readers(cluster: Cluster, job: Job) -> list[Any]:
    from clickmill.kube import kinds

    return cluster.list(kinds.POD, labels={"clickmill.io/role": "reader"}, namespace=job.namespace)
