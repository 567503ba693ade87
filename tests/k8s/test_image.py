"""What the image promises, seen from within a container of it."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.k8s.conftest import Kubectl, poll

CONFIG = """\
workspace: "."
mode: train
runner: [{name: train, class: train}]
dataset: [{name: log, format: criteo, data_path: train.tsv}]
phase: [{name: first, model: dnn, dataset_name: log}]
"""


@pytest.fixture(params=["train", "base"])
def either_image(request: pytest.FixtureRequest, image: str) -> str:
    """The image, with torch or without."""
    if request.param == "train":
        return image
    name = os.environ.get("CLICKMILL_BASE_IMAGE", "")
    if not name:
        pytest.skip("no image without torch: set CLICKMILL_BASE_IMAGE")
    return name


def pod(image: str, name: str, *command: str, **spec: Any) -> str:
    """A pod as strict as the rules of a cluster can be."""
    container = {
        "name": "main",
        "image": image,
        "command": list(command),
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        **spec,
    }
    body = {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body})


def status(kubectl: Kubectl, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl("get", "pod", name, "-o", "json"))["status"]
    return found


def terminated(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """How the container of a pod has ended, when it has."""
    found: dict[str, Any] = {}

    def has_ended() -> bool:
        containers = status(kubectl, name).get("containerStatuses") or [{}]
        found.update((containers[0].get("state") or {}).get("terminated") or {})
        return bool(found)

    poll(has_ended, f"{name} to end")
    return found


def said(kubectl: Kubectl, image: str, script: str) -> str:
    """What a script prints in a pod of the image."""
    kubectl("apply", "-f", "-", stdin=pod(image, "look", "sh", "-c", script))
    ended = terminated(kubectl, "look")
    words = kubectl("logs", "look")
    assert ended["exitCode"] == 0, words
    return words


def test_it_runs_as_nobody_special_on_a_file_system_that_it_cannot_write_to(
    kubectl: Kubectl, either_image: str
):
    words = said(
        kubectl,
        either_image,
        "id -u; clickmill --version; touch /x /job/x /opt/x 2>&1 | grep -c Read-only; touch /tmp/x",
    )
    user, version, refused = words.split("\n")[:3]
    assert user == "1000"
    assert version.startswith("clickmill ")
    assert refused == "3"


def test_it_trains_and_holds_nothing_to_build_with(kubectl: Kubectl, image: str):
    script = f"""
        for tool in gcc cc make pip pip3 cargo tar paddle_k8s; do command -v $tool; done
        cd /tmp && clickmill data synth train.tsv --rows 2000 >/dev/null
        echo '{CONFIG}' >config.yaml && clickmill train -m config.yaml --json 2>/dev/null
    """
    tar, paddle, summary = said(kubectl, image, script).splitlines()[:3]
    assert (tar, paddle) == ("/usr/bin/tar", "/opt/package/bin/paddle_k8s")
    assert json.loads(summary)[0]["train"]["count"] > 0


def test_the_one_for_servers_and_tools_has_no_torch_and_says_so(kubectl: Kubectl, image: str):
    base = os.environ.get("CLICKMILL_BASE_IMAGE", "")
    if not base:
        pytest.skip("no image without torch: set CLICKMILL_BASE_IMAGE")
    script = f"""
        for tool in gcc cc make pip pip3 cargo; do command -v $tool; done
        cd /tmp && clickmill data synth train.tsv --rows 2000 >/dev/null
        echo '{CONFIG}' >config.yaml && clickmill config check -m config.yaml >/dev/null && echo checked
        python3 -c 'import torch' 2>&1 | tail -n 1
        clickmill train -m config.yaml 2>&1 | grep -o 'clickmill.train.' | head -n 1
    """
    checked, torch, remedy = said(kubectl, base, script).splitlines()
    assert checked == "checked"
    assert "No module named 'torch'" in torch
    assert remedy == "clickmill[train]"


def test_no_program_in_it_makes_its_user_somebody_else(kubectl: Kubectl, either_image: str):
    assert (
        said(kubectl, either_image, "find / -xdev -type f -perm /6000 2>/dev/null; echo looked") == "looked\n"
    )


@pytest.mark.parametrize("as_pid_1", ["a role", "a launcher"])
def test_it_ends_when_it_is_told_to(kubectl: Kubectl, either_image: str, as_pid_1: str):
    """PID 1 that does not listen is killed after the grace period, which is an hour here."""
    command = (
        ("clickmill", "pserver", "--host", "127.0.0.1")
        if as_pid_1 == "a role"
        else ("paddle_k8s", "start_fluid")
    )
    entry = {
        "ENTRY": "sleep 3600",
        "PADDLE_JOB_NAME": "fluid-ctr",
        "PADDLE_TRAINERS_NUM": "1",
        "PADDLE_PSERVERS_NUM": "1",
        "TRAINING_ROLE": "PSERVER",
        "POD_NAME": "quiet",
        "NAMESPACE": "none",
        "CLICKMILL_WAIT_S": "3600",
    }
    env = [{"name": name, "value": value} for name, value in entry.items()]
    manifest = json.loads(pod(either_image, "quiet", *command, workingDir="/tmp", env=env))
    manifest["spec"]["terminationGracePeriodSeconds"] = 3600
    kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    poll(
        lambda: kubectl("logs", "quiet") if status(kubectl, "quiet")["phase"] == "Running" else "",
        "its first words",
    )
    kubectl("delete", "pod", "quiet", "--wait=true", "--timeout=110s")


def test_a_launcher_without_rights_leaves_the_commands_that_grant_them(
    kubectl: Kubectl, image: str, namespace: str
):
    variables = {
        "CLICKMILL_ROLE": "TRAINER",
        "CLICKMILL_JOB": "ctr",
        "CLICKMILL_PSERVERS": "1",
        "CLICKMILL_TRAINERS": "1",
        "POD_NAME": "ctr-trainer-0",
        "POD_IP": "127.0.0.1",
        "NAMESPACE": namespace,
    }
    env = [{"name": name, "value": value} for name, value in variables.items()]
    command = ("clickmill", "pod", "-m", "dnn", "--output", "/tmp/output")
    kubectl("apply", "-f", "-", stdin=pod(image, "ctr-trainer-0", *command, workingDir="/tmp", env=env))
    ended = terminated(kubectl, "ctr-trainer-0")
    assert ended["exitCode"] == 2
    assert "ServiceAccount `default` has no Role" in ended["message"]
    hint = ended["message"].partition("hint: ")[2]
    assert hint.startswith(
        f"kubectl -n {namespace} create role ctr-token --verb=get,update --resource=secrets"
    )


def test_a_launcher_tells_what_is_wrong_with_the_configuration(kubectl: Kubectl, image: str):
    command = (
        "sh",
        "-c",
        "echo 'mode: train' >config.yaml; exec clickmill pod -m config.yaml --output /tmp/output",
    )
    variables = {
        "CLICKMILL_ROLE": "PSERVER",
        "CLICKMILL_JOB": "ctr",
        "CLICKMILL_PSERVERS": "1",
        "CLICKMILL_TRAINERS": "1",
        "POD_NAME": "ctr-pserver-0",
        "POD_IP": "127.0.0.1",
        "NAMESPACE": "none",
    }
    env = [{"name": name, "value": value} for name, value in variables.items()]
    kubectl("apply", "-f", "-", stdin=pod(image, "ctr-pserver-0", *command, workingDir="/tmp", env=env))
    ended = terminated(kubectl, "ctr-pserver-0")
    assert ended["exitCode"] == 2
    assert "config.yaml" in ended["message"]
    assert "runner" in ended["message"]
