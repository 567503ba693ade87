"""Equal workers on a cluster: they meet by the names of their pods, and start again together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Kubectl, poll
from .submitted import NAME, Job

KILL = """
for process in /proc/[0-9]*; do
  if tr '\\0' ' ' <$process/cmdline | grep -q 'clickmill [t]rain'; then kill -9 ${process#/proc/}; fi
done
"""


@pytest.fixture(params=["volcano", "default"])
def job(request: pytest.FixtureRequest, tmp_path: Path, image: str, namespace: str, volcano: None) -> Job:
    found = Job(tmp_path, image, namespace, request.param)
    found.make_log(2000)
    return found


def submit(job: Job, epochs: int) -> None:
    job.write(epochs=epochs, memory="1Gi")
    config, backend = job.folder / "config.yaml", job.folder / "backend.yaml"
    config.write_text(
        config.read_text().replace("class: cluster_train", "class: cluster_train\n  fleet_mode: collective")
    )
    backend.write_text(backend.read_text().replace("    trainer: {", "    worker: {"))
    job.run("submit", "-m", "config.yaml", "-b", "backend.yaml")


@pytest.mark.timeout(900)
def test_workers_train_to_the_end(job: Job) -> None:
    submit(job, epochs=2)
    job.job("wait", "--timeout", "600")
    status = job.job("status")
    assert status["phase"] == "Completed"
    assert [pod["role"] for pod in status["pods"]] == ["worker", "worker"]
    assert status["samples"] == 2 * 2000
    checkpoint = job.job("fetch", "-o", "model")["paths"][-1]
    told = json.loads(job.run("evaluate", "-m", "config.yaml", "--checkpoint", checkpoint, "--json"))
    assert told["samples"] == 2000


@pytest.mark.timeout(900)
def test_a_worker_that_dies_brings_all_back_to_the_last_checkpoint(job: Job, kubectl: Kubectl) -> None:
    submit(job, epochs=40)
    first = f"{NAME}-worker-0"

    def checkpoints() -> str:
        look = "ls /output/ctr/checkpoints 2>/dev/null || true"
        return kubectl("exec", running_name(kubectl, first), "--", "sh", "-c", look)

    poll(lambda: running_name(kubectl, first) and checkpoints(), "the first checkpoint", deadline_s=300)
    second = running_name(kubectl, f"{NAME}-worker-1")
    kubectl("exec", second, "--", "sh", "-c", KILL)
    job.job("wait", "--timeout", "800")
    status = job.job("status")
    assert (status["phase"], status["samples"]) == ("Completed", 40 * 2000)
    assert status["retries"] >= 1


def running_name(kubectl: Kubectl, host: str) -> str:
    """Name of the running pod that has the host name; plain Kubernetes adds letters to it."""
    found = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    names = [
        pod["metadata"]["name"]
        for pod in found
        if pod["spec"].get("hostname") == host and pod["status"]["phase"] == "Running"
    ]
    return names[0] if names else ""
