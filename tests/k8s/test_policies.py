"""What becomes of a job when its pods end: our manifest, with programs that end when they are told."""

from __future__ import annotations

import pytest

from clickmill.kube import kinds
from clickmill.kube.client import Cluster

from .conftest import Kubectl, poll
from .jobs import job, phase, pods, small_plan
from .puppets import one_to_a_node, quick, start, states, tell_to_end, uid, until_running

pytestmark = pytest.mark.usefixtures("volcano", "image", "kubectl")


def _retries(cluster: Cluster, plan: object) -> int:
    return int(job(cluster, plan)["status"].get("retryCount", 0))  # type: ignore[arg-type]


def test_a_job_ends_completed_when_all_pods_have(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace)
    start(cluster, plan)
    until_running(cluster, plan, 4)
    for pod in ("job-trainer-0", "job-trainer-1", "job-pserver-0", "job-pserver-1"):
        tell_to_end(namespace, pod, 0)
    poll(lambda: phase(cluster, plan) == "Completed", "the job to be Completed")
    assert set(states(cluster, plan).values()) == {"Succeeded"}


def test_a_job_ends_completed_without_a_trainer_that_never_found_room(
    cluster: Cluster, namespace: str
) -> None:
    plan = small_plan(namespace, trainers=2)
    start(cluster, plan, change=one_to_a_node(cluster))
    poll(lambda: sorted(states(cluster, plan).values()) == ["Pending"] + ["Running"] * 3, "all but one")
    for pod in ("job-pserver-0", "job-pserver-1"):
        tell_to_end(namespace, pod, 0)
    poll(lambda: phase(cluster, plan) == "Completed", "the job to be Completed")


@pytest.mark.parametrize("code", [2, 3, 4, 5])
def test_a_final_code_ends_the_job_at_once_and_its_pod_stays(
    cluster: Cluster, namespace: str, code: int
) -> None:
    plan = small_plan(namespace, pservers=1, trainers=1)
    start(cluster, plan)
    until_running(cluster, plan, 2)
    tell_to_end(namespace, "job-trainer-0", code)
    poll(lambda: phase(cluster, plan) == "Terminated", "the job to be Terminated")
    assert states(cluster, plan) == {"job-trainer-0": "Failed"}


@pytest.mark.parametrize("pod", ["job-trainer-1", "job-trainer-0", "job-pserver-0"])
def test_another_failure_starts_that_pod_again_and_no_other(
    cluster: Cluster, namespace: str, pod: str
) -> None:
    plan = small_plan(namespace)
    start(cluster, plan)
    until_running(cluster, plan, 4)
    before = {name: uid(cluster, plan, name) for name in states(cluster, plan)}
    tell_to_end(namespace, pod, 1)
    poll(lambda: uid(cluster, plan, pod) not in {"", before[pod]}, f"{pod} to be made again")
    until_running(cluster, plan, 4)
    changed = {name for name, old in before.items() if uid(cluster, plan, name) != old}
    assert (changed, _retries(cluster, plan)) == ({pod}, 1)
    policy = cluster.get(kinds.NETWORK_POLICY, plan.names.job, namespace=namespace)
    service = cluster.get(kinds.SERVICE, plan.names.service, namespace=namespace)
    assert policy is not None
    assert service is not None


def test_a_pod_that_is_deleted_is_made_again_and_not_counted(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace)
    start(cluster, plan)
    until_running(cluster, plan, 4)
    for pod in ("job-trainer-1", "job-pserver-0"):
        old = uid(cluster, plan, pod)
        cluster.delete(kinds.POD, pod, namespace=namespace)
        poll(lambda pod=pod, old=old: uid(cluster, plan, pod) not in {"", old}, f"{pod} to be made again")
        until_running(cluster, plan, 4)
    assert _retries(cluster, plan) == 0


def test_scaling_down_is_not_counted_and_lets_the_others_run(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace, trainers=4)
    start(cluster, plan)
    until_running(cluster, plan, 6)
    before = {name: uid(cluster, plan, name) for name in ("job-pserver-0", "job-pserver-1", "job-trainer-0")}
    tasks = job(cluster, plan)["spec"]["tasks"]
    tasks[1]["replicas"] = 1
    cluster.patch(kinds.VOLCANO_JOB, "job", {"spec": {"tasks": tasks}}, namespace=namespace)
    poll(lambda: set(states(cluster, plan)) == set(before), "the chief and the servers alone")
    poll(lambda: len(cluster.list(kinds.POD, namespace=namespace)) == 3, "the others to be gone")
    assert {name: uid(cluster, plan, name) for name in before} == before
    assert (_retries(cluster, plan), phase(cluster, plan)) == (0, "Running")


def test_a_crash_loop_ends(cluster: Cluster, namespace: str) -> None:
    plan = quick(small_plan(namespace, pservers=1, trainers=1))
    start(cluster, plan, program="raise SystemExit(1)")
    poll(lambda: phase(cluster, plan) == "Failed", "the job to be Failed")
    # Of pods that failed at the same moment one may be left.
    poll(lambda: set(states(cluster, plan).values()) <= {"Failed"}, "nothing to run any more")


def test_pods_know_how_often_they_were_started_again(
    cluster: Cluster, namespace: str, kubectl: Kubectl
) -> None:
    plan = small_plan(namespace, pservers=1, trainers=1)
    start(cluster, plan)
    until_running(cluster, plan, 2)
    old = uid(cluster, plan, "job-trainer-0")
    tell_to_end(namespace, "job-trainer-0", 1)
    poll(lambda: uid(cluster, plan, "job-trainer-0") not in {"", old}, "the trainer to be made again")
    until_running(cluster, plan, 2)
    told = [kubectl("exec", pod, "--", "printenv", "CLICKMILL_RESTARTS", "CLICKMILL_MAX_RESTARTS").split()
            for pod in ("job-trainer-0", "job-pserver-0")]  # fmt: skip
    assert told == [["1", "5"], ["0", "5"]]


def test_pods_find_each_other_by_name(cluster: Cluster, namespace: str, kubectl: Kubectl) -> None:
    plan = small_plan(namespace)
    start(cluster, plan)
    until_running(cluster, plan, 4)
    look = "import socket, sys; print(socket.gethostbyname(sys.argv[1]))"
    for name in ("job-pserver-1", "job-trainer-0"):
        found = cluster.get(kinds.POD, name, namespace=namespace)
        assert found is not None
        address = found["status"]["podIP"]

        def claim(name: str = name, address: str = address) -> bool:
            told = kubectl("exec", "job-trainer-1", "--", "python3", "-c", look, f"{name}.job-pods")
            return told.strip() == address

        poll(claim, f"the name of {name}")


def test_pods_whose_output_one_node_can_write_come_to_one_node(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace, trainers=3, more="  output: {access_mode: ReadWriteOnce}\n")
    start(cluster, plan)
    until_running(cluster, plan, 5)
    assert len({pod["spec"]["nodeName"] for pod in pods(cluster, plan)}) == 1


def test_workers_of_a_collective_job_start_again_together(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace, trainers=3, is_collective=True)
    start(cluster, plan)
    until_running(cluster, plan, 3)
    before = {name: uid(cluster, plan, name) for name in states(cluster, plan)}
    assert set(before) == {"job-worker-0", "job-worker-1", "job-worker-2"}
    tell_to_end(namespace, "job-worker-1", 1)
    poll(
        lambda: all(uid(cluster, plan, name) not in {"", old} for name, old in before.items()),
        "all workers to be made again",
    )
    until_running(cluster, plan, 3)
    assert _retries(cluster, plan) == 1
    for name in before:
        tell_to_end(namespace, name, 0)
    poll(lambda: phase(cluster, plan) == "Completed", "the job to be Completed")
