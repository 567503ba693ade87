"""`clickmill submit` as it is typed, on a real cluster: what it shows is what it applies, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clickmill.kube import kinds
from clickmill.kube.client import Cluster

from .conftest import DEADLINE_S, Kubectl

CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: cluster_train, epochs: 1}
dataset:
- {name: log, data_path: "{workspace}/log.tsv", format: criteo, batch_size: 10}
phase:
- {name: first, model: dnn, dataset_name: log}
hyper_parameters: {fc_sizes: [4], sparse_feature_dim: 2}
"""
BACKEND = """\
backend: kubernetes
submit: {job_name: My_Job, k8s-trainers: 2, files: ./*.yaml ./*.tsv}
kubernetes:
  resources:
    pserver: {cpu: 10m, memory: 128Mi}
    trainer: {cpu: 10m, memory: 512Mi}
"""

pytestmark = pytest.mark.usefixtures("volcano")


@pytest.fixture
def job(tmp_path: Path, namespace: str) -> list[str]:
    """The command of a small job whose data travels with its files."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "backend.yaml").write_text(BACKEND)
    synth = [sys.executable, "-m", "clickmill", "data", "synth", "log.tsv", "--rows", "200"]
    subprocess.run(synth, cwd=tmp_path, check=True, capture_output=True)
    command = [sys.executable, "-m", "clickmill.run", "-m", "config.yaml", "-b", "backend.yaml"]
    return [*command, "--set", f"kubernetes.namespace={namespace}"]


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=False, timeout=2 * DEADLINE_S
    )


def test_what_is_shown_can_be_applied_and_is_what_is_submitted(
    tmp_path: Path, job: list[str], kubectl: Kubectl
) -> None:
    absent = ("--set", "kubernetes.image=clickmill-absent:test")
    shown = run(tmp_path, *job, *absent, "--dry-run", "-o", "yaml")
    assert shown.returncode == 0, shown.stderr
    kubectl("apply", "-f", "-", stdin=shown.stdout)
    done = run(tmp_path, *job, *absent, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["job"] == "my-job"
    assert {each["change"] for each in facts["objects"]} == {"unchanged"}
    listed = run(tmp_path, *job, *absent, "--dry-run", "-o", "json")
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=listed.stdout)


def test_secrets_are_in_no_object_but_the_one_for_them(
    tmp_path: Path, job: list[str], cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICKMILL_FS_UGI", "me,pass-word")
    (tmp_path / "backend.yaml").write_text(
        BACKEND + 'config: {fs_name: "hdfs://there", fs_ugi: "me,pass-word"}\n'
    )
    done = run(tmp_path, *job, "--set", "kubernetes.image=clickmill-absent:test")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "my-job\n"
    assert "pass-word" not in done.stdout + done.stderr
    for kind in (kinds.CONFIG_MAP, kinds.VOLCANO_JOB, kinds.SERVICE, kinds.POD):
        assert "pass-word" not in json.dumps(cluster.list(kind, namespace=namespace))
    access = cluster.get(kinds.SECRET, "my-job-access", namespace=namespace)
    assert access is not None
    assert set(access["data"]) == {"CLICKMILL_FS_UGI"}


def test_one_command_trains_and_tells_how_it_ended(tmp_path: Path, job: list[str], image: str) -> None:
    command = (*job, "--set", f"kubernetes.image={image}", "--wait", "--json")
    done = run(tmp_path, *command, "--set", "runner.0.epochs=2")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["phase"] == "Completed"
    failed = run(tmp_path, *command, "--replace", "--set", "dataset.0.data_path=/nowhere")
    assert failed.returncode == 3, failed.stderr
    assert "/nowhere" in failed.stderr
