"""The manifest of the seeds, as it stands but for the image: the CTR job of PaddlePaddle on Volcano."""

from __future__ import annotations

import json
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s.conftest import Kubectl, poll

MANIFEST = Path(__file__).with_name("ctr-paddlepaddle-on-volcano.yaml")
TRAINER = "ctr-volcano-trainer-0"
KILL = """
for process in /proc/[0-9]*; do
  if tr '\\0' ' ' <$process/cmdline | grep -q 'clickmill [t]rainer'; then kill -9 ${process#/proc/}; fi
done
"""


def manifest(image: str) -> str:
    return MANIFEST.read_text().replace("volcanosh/edlctr:v1", image)


def short(image: str) -> str:
    """With less to train on, for what does not need the whole run."""
    job: dict[str, Any] = yaml.safe_load(manifest(image))
    for task in job["spec"]["tasks"]:
        for variable in task["template"]["spec"]["containers"][0]["env"]:
            if variable["name"] == "ENTRY":
                variable["value"] += " --num_passes 2 --synthetic_rows 20000"
    return json.dumps(job)


def grant(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "role", "pods", "--verb=get,list,watch", "--resource=pods")
    kubectl("create", "rolebinding", "pods", "--role=pods", f"--serviceaccount={namespace}:default")


def words(kubectl: Kubectl, name: str = TRAINER) -> str:
    """The log of a pod; empty where it has not started."""
    pods = json.loads(kubectl("get", "pods", "-o", "json"))["items"]
    found = next((pod for pod in pods if pod["metadata"]["name"] == name), {"status": {}})
    has_started = any(
        "running" in each["state"] or "terminated" in each["state"]
        for each in found["status"].get("containerStatuses", [])
    )
    return kubectl("logs", name) if has_started else ""


def phase(kubectl: Kubectl) -> str:
    return kubectl("get", "vcjob", "ctr-volcano", "-o", "jsonpath={.status.state.phase}")


@pytest.mark.timeout(1800)
def test_it_trains_to_the_end_as_it_stands(kubectl: Kubectl, volcano: None, image: str, namespace: str):
    grant(kubectl, namespace)
    kubectl("apply", "-f", "-", stdin=manifest(image))
    poll(lambda: phase(kubectl) in {"Completed", "Failed", "Aborted"}, "the end of the job", deadline_s=1700)
    assert phase(kubectl) == "Completed"
    first, second = words(kubectl), words(kubectl, "ctr-volcano-trainer-1")
    for line in (
        "+ start_fluid_process\n",
        "+ pserver_label=paddle-job-pserver=fluid-ctr\n",
        "label selector: paddle-job-pserver=fluid-ctr, desired: 2\n",
        "+ export PADDLE_TRAINER_ID=0\n",
        "+ stdbuf -oL sh -c 'cd /workspace/ctr && python train.py --is_local 0 --cloud_train 1'\n",
        "warning: this job has no token",
        " - INFO - run dist training\n",
        " - INFO - run trainer\n",
        " - INFO - TRAIN --> pass: 0 batch: 0 loss: 0.69",
    ):
        assert line in first
    assert " - INFO - TRAIN --> pass: 0 batch: 0 loss: 0.69" in second, "whichever pod is looked at"
    # One of them may be busy with a checkpoint when a pass begins.
    assert " - INFO - TRAIN --> pass: 9 batch: 0 loss: " in first + second
    # Told by whichever trainer did it for all.
    assert " - INFO - pass_id: 9, pass_time_cost: " in first + second
    for each in (first, second):
        assert "path=models/pass-9 " in each or "path=models/pass-9\n" in each


@pytest.mark.timeout(600)
def test_without_rights_its_pods_say_what_to_type(
    kubectl: Kubectl, volcano: None, image: str, namespace: str
):
    kubectl("apply", "-f", "-", stdin=short(image))

    def message() -> str:
        where = "jsonpath={.status.containerStatuses[0].lastState.terminated.message}"
        return kubectl("get", "pod", TRAINER, "-o", where) if TRAINER in kubectl("get", "pods") else ""

    poll(message, "the last words of the trainer", deadline_s=400)
    hint = message().partition("hint: ")[2]
    assert hint.startswith(f"kubectl -n {namespace} create role fluid-ctr-pods ")
    subprocess.run(["bash", "-euc", hint], check=True, capture_output=True)  # as a person would
    poll(lambda: phase(kubectl) == "Completed", "the job to be done", deadline_s=500)


@pytest.mark.timeout(600)
def test_models_can_be_copied_out_while_it_trains(
    kubectl: Kubectl, volcano: None, image: str, namespace: str, tmp_path: Path
):
    grant(kubectl, namespace)
    kubectl("apply", "-f", "-", stdin=short(image).replace("--num_passes 2", "--num_passes 500"))
    trainers = (TRAINER, "ctr-volcano-trainer-1")

    def writers() -> list[str]:
        return [name for name in trainers if "saved path=models/pass-0 " in words(kubectl, name)]

    poll(writers, "the first model", deadline_s=400)
    # What `kubectl cp` does, of one model that does not change any more.
    pack = ("tar", "-C", "/workspace/ctr/models", "-c", "pass-0")
    command = ("kubectl", "-n", namespace, "exec", writers()[0], "--", *pack)
    packed = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(tmp_path, filter="data")
    from clickmill.train.checkpoint import open_checkpoint

    assert open_checkpoint(tmp_path / "pass-0").manifest.is_pass_end


@pytest.mark.timeout(600)
def test_a_container_that_dies_is_started_again_and_the_job_ends(
    kubectl: Kubectl, volcano: None, image: str, namespace: str
):
    grant(kubectl, namespace)
    kubectl("apply", "-f", "-", stdin=short(image).replace("--num_passes 2", "--num_passes 20"))
    poll(
        lambda: "pass: 1 batch: " in words(kubectl),
        "training",
        deadline_s=400,
    )
    kubectl("exec", "ctr-volcano-trainer-1", "--", "sh", "-c", KILL)
    poll(lambda: phase(kubectl) == "Completed", "the job to be done", deadline_s=500)
