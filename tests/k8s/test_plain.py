"""Jobs without Volcano: two Indexed Jobs of plain Kubernetes, with programs that end when they are told."""

from __future__ import annotations

import pytest

from clickmill.errors import StateError
from clickmill.kube import kinds
from clickmill.kube.client import Cluster, Object
from clickmill.submit.kubernetes.api import JobPlan, finished_phase, submit

from .conftest import Kubectl, poll
from .jobs import pods, small_plan, with_trainers
from .puppets import start, tell_to_end, until_running

pytestmark = pytest.mark.usefixtures("image", "kubectl")


def _plan(namespace: str, *, pservers: int = 2, trainers: int = 2) -> JobPlan:
    return small_plan(namespace, pservers=pservers, trainers=trainers, scheduler="default")


def _job(cluster: Cluster, plan: JobPlan, role: str) -> Object:
    found = cluster.get(kinds.JOB, f"job-{role}", namespace=plan.namespace)
    assert found is not None
    return found


def _pod(cluster: Cluster, plan: JobPlan, host: str) -> str:
    """Name of the pod that has the host name."""
    (name,) = [pod["metadata"]["name"] for pod in pods(cluster, plan)
               if pod["spec"]["hostname"] == host and pod["status"]["phase"] == "Running"]  # fmt: skip
    return str(name)


def test_servers_leave_when_the_trainers_are_done(cluster: Cluster, namespace: str) -> None:
    plan = _plan(namespace)
    start(cluster, plan)
    until_running(cluster, plan, 4)
    for host in ("job-trainer-0", "job-trainer-1", "job-pserver-0", "job-pserver-1"):
        tell_to_end(namespace, _pod(cluster, plan, host), 0)
    for role in ("trainer", "pserver"):
        poll(lambda role=role: finished_phase(_job(cluster, plan, role)) == "Complete", f"{role}s to be done")


def test_a_final_code_fails_the_job_at_once(cluster: Cluster, namespace: str) -> None:
    plan = _plan(namespace, pservers=1, trainers=2)
    start(cluster, plan)
    until_running(cluster, plan, 3)
    tell_to_end(namespace, _pod(cluster, plan, "job-trainer-1"), 3)
    poll(lambda: finished_phase(_job(cluster, plan, "trainer")) == "Failed", "the trainers to have failed")
    (condition,) = [each for each in _job(cluster, plan, "trainer")["status"]["conditions"]
                    if each["type"] == "Failed"]  # fmt: skip
    assert "exit code 3" in condition["message"]


def test_a_pod_that_fails_comes_again_under_its_name(
    cluster: Cluster, namespace: str, kubectl: Kubectl
) -> None:
    plan = _plan(namespace)
    start(cluster, plan)
    until_running(cluster, plan, 4)
    tell_to_end(namespace, _pod(cluster, plan, "job-pserver-0"), 1)
    poll(lambda: _job(cluster, plan, "pserver")["status"].get("failed") == 1, "the failure to be counted")
    poll(
        lambda: [pod for pod in pods(cluster, plan)
                 if pod["spec"]["hostname"] == "job-pserver-0" and pod["status"]["phase"] == "Running"],
        "the server to be there again",
    )  # fmt: skip
    new = _pod(cluster, plan, "job-pserver-0")
    address = kubectl("get", "pod", new, "-o", "jsonpath={.status.podIP}")
    look = "import socket; print(socket.gethostbyname('job-pserver-0.job-pods'))"
    trainer = _pod(cluster, plan, "job-trainer-0")
    poll(
        lambda: kubectl("exec", trainer, "--", "python3", "-c", look).strip() == address,
        "its name to mean the new pod",
    )


def test_a_pod_that_is_evicted_is_not_counted(cluster: Cluster, namespace: str) -> None:
    plan = _plan(namespace)
    start(cluster, plan)
    until_running(cluster, plan, 4)
    old = _pod(cluster, plan, "job-trainer-1")
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": old, "namespace": namespace},
    }
    cluster.http.post(f"{kinds.POD.path(namespace, old)}/eviction", json=eviction).raise_for_status()
    poll(
        lambda: [pod for pod in pods(cluster, plan)
                 if pod["spec"]["hostname"] == "job-trainer-1" and pod["status"]["phase"] == "Running"
                 and pod["metadata"]["name"] != old],
        "the trainer to be there again",
    )  # fmt: skip
    assert _job(cluster, plan, "trainer")["status"].get("failed", 0) == 0


def test_submit_makes_scales_and_refuses_as_with_volcano(cluster: Cluster, namespace: str) -> None:
    plan = _plan(namespace)
    assert submit(cluster, plan).change == "created"
    assert submit(cluster, plan).change == "unchanged"
    poll(lambda: len(pods(cluster, plan)) == 4, "four pods")
    assert submit(cluster, with_trainers(plan, 4)).change == "changed"
    poll(lambda: len(pods(cluster, plan)) == 6, "two more trainers")
    assert submit(cluster, with_trainers(plan, 1)).change == "changed"
    poll(lambda: len(pods(cluster, plan)) == 3, "one trainer")
    other = small_plan(namespace, scheduler="default", more="  env: {GLOG_v: '1'}\n")
    with pytest.raises(StateError, match="GLOG_v"):
        submit(cluster, other)
