"""`clickmill cluster check` on a real cluster, as an administrator and as somebody who may do little."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickmill.kube.client import Cluster

from .conftest import Kubectl, poll
from .submitted import LONG, Job

SUBMITTER = Path(__file__).parents[2] / "deploy" / "k8s" / "submitter.yaml"
BACKEND = """\
backend: Kubernetes
submit: {job_name: job, k8s_trainers: 2, k8s_ps_num: 2}
kubernetes:
  image: clickmill-absent:test
  resources: {pserver: {cpu: 10m, memory: 16Mi}, trainer: {cpu: 10m, memory: 16Mi}}
"""

Check = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def check(cluster: Cluster, namespace: str, tmp_path: Path) -> Check:
    """`clickmill cluster check --json`: exit code, and findings by what was looked at."""

    def run(
        more: str = "", *words: str, text: str = BACKEND, kubeconfig: Path | None = None
    ) -> tuple[int, dict[str, Any]]:
        backend = tmp_path / "backend.yaml"
        backend.write_text(text + more)
        environ = {**os.environ, **({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})}
        command = [sys.executable, "-m", "clickmill", "cluster", "check", "-b", str(backend), "-n", namespace]
        done = subprocess.run(
            [*command, *words, "--json"],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.stdout, done.stderr
        findings = json.loads(done.stdout)["findings"]
        return done.returncode, {finding["what"]: finding for finding in findings}

    return run


@pytest.mark.usefixtures("volcano")
def test_a_cluster_that_has_everything_is_fit(check: Check) -> None:
    code, findings = check()
    assert code == 0, findings
    assert findings["webhook"]["state"] == "ok"
    assert findings["queue `default`"]["state"] == "ok"
    assert findings["the gang"]["state"] in {"ok", "warn"}


@pytest.mark.usefixtures("volcano")
@pytest.mark.parametrize(
    ("more", "what", "remedy"),
    [
        ("  queue: nobody-made-this\n", "queue `nobody-made-this`", "deploy/k8s/queues.yaml"),
        (
            "  priority_class: nobody-made-this\n",
            "PriorityClass `nobody-made-this`",
            "deploy/k8s/priorities.yaml",
        ),
        ("  output: {claim: absent}\n", "claim `absent`", "make it"),
        ("  output: {storage_class: absent}\n", "storage class `absent`", "kubectl get storageclass"),
        ("  node_selector: {absent: label}\n", "nodes", "kubectl label node NODE absent=label"),
        ("  output: {host_path: /home/work}\n  model_node: {absent: y}\n", "nodes", "absent=y"),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(check: Check, more: str, what: str, remedy: str) -> None:
    code, findings = check(more)
    assert code == 1
    assert findings[what]["state"] == "lacks"
    assert remedy in findings[what]["remedy"]


@pytest.mark.usefixtures("volcano")
def test_a_pull_secret_that_is_not_there_is_a_warning(check: Check) -> None:
    code, findings = check("  image_pull_secrets: [absent]\n")
    assert (code, findings["Secret `absent`"]["state"]) == (0, "warn")
    assert "kubectl create secret docker-registry absent" in findings["Secret `absent`"]["remedy"]


@pytest.mark.usefixtures("volcano")
def test_an_image_is_tried_with_a_pod_which_goes_again(check: Check, image: str, kubectl: Kubectl) -> None:
    code, findings = check("", "--pull")
    assert code == 1
    absent = findings["a pod of `clickmill-absent:test`"]
    assert absent["state"] == "lacks"
    assert "kubernetes.image_pull_secrets" in absent["remedy"]
    code, findings = check("", "--pull", text=BACKEND.replace("clickmill-absent:test", image))
    assert code == 0
    assert findings[f"a pod of `{image}`"]["state"] == "ok"
    assert "runs on node" in findings[f"a pod of `{image}`"]["found"]
    poll(lambda: not kubectl("get", "pods", "-o", "name"), "the pods to be gone")


@pytest.mark.usefixtures("volcano")
def test_a_gang_that_no_node_can_take_is_told(check: Check) -> None:
    code, findings = check(
        "  resources: {pserver: {cpu: 100000}}\n", text=BACKEND.rpartition("  resources")[0]
    )
    assert code == 1
    assert findings["the gang"]["state"] == "lacks"
    assert "finds no room even on empty nodes" in findings["the gang"]["found"]


@pytest.mark.usefixtures("volcano")
def test_a_quota_without_room_for_all_pods_is_told(check: Check, kubectl: Kubectl) -> None:
    kubectl("create", "quota", "small", "--hard=pods=3,requests.memory=1Gi")
    poll(
        lambda: "pods" in kubectl("get", "quota", "small", "-o", "jsonpath={.status.used}"),
        "the quota to count",
    )
    code, findings = check()
    assert code == 1
    assert findings["quota `small`"]["found"] == "pods: 4 asked for, 3 of 3 left"


@pytest.mark.usefixtures("volcano")
def test_rights_that_are_missing_are_all_named_and_the_remedy_grants_them(
    check: Check, newcomer: Path, namespace: str, kubectl: Kubectl
) -> None:
    code, findings = check(kubeconfig=newcomer)
    assert code == 1
    lacking = findings["jobs.batch.volcano.sh"]
    assert lacking["found"] == "may not get, list, create, patch, delete, update"
    remedy = lacking["remedy"].partition("an administrator types: ")[2]
    for command in remedy.replace("deploy/k8s/submitter.yaml", str(SUBMITTER)).split(" && "):
        subprocess.run(command.split(), check=True, capture_output=True, timeout=60)

    def is_granted() -> bool:
        found = check(kubeconfig=newcomer)[1].values()
        return all(finding["state"] != "lacks" for finding in found if finding["topic"] == "rights")

    poll(is_granted, "the rights to count")


@pytest.fixture
def submitter(newcomer: Path, namespace: str, kubectl: Kubectl) -> Path:
    """A kubeconfig of somebody with the Role that we hand out, and nothing else."""
    kubectl("apply", "-f", str(SUBMITTER))
    kubectl(
        "create", "rolebinding", "newcomer", "--role=clickmill-submitter",
        f"--serviceaccount={namespace}:newcomer",
    )  # fmt: skip
    return newcomer


@pytest.mark.usefixtures("volcano")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scheduler", ["volcano", "default"])
def test_somebody_with_the_role_of_a_submitter_can_do_everything(
    submitter: Path,
    namespace: str,
    image: str,
    scheduler: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(submitter))
    job = Job(tmp_path, image, namespace, scheduler)
    job.make_log(2000)
    job.submit(epochs=LONG, trainers=1)
    job.await_samples(2000)
    assert job.job("scale", "--trainers", "2", "--pservers", "2")["pservers"] == {"before": 1, "now": 2}
    job.submit(epochs=LONG, trainers=1)
    assert job.job("status")["training"]["num_pservers"] == 2, "they stay, though backend.yaml says 1"
    assert "role.started" in job.run("job", "logs", "ctr", "-n", namespace)
    assert json.loads(job.run("job", "ls", "-n", namespace, "--json"))[0]["phase"] == "Running"
    assert job.job("fetch", "-o", "model")["paths"]
    samples = job.job("stop")["samples"]
    job.submit(epochs=LONG, trainers=1)
    status = job.await_samples(samples + 1)
    assert status["training"]["num_pservers"] == 2, "so many as it was scaled to"
    job.job("delete", "--with-output")
    assert json.loads(job.run("job", "ls", "-n", namespace, "--json")) == []
