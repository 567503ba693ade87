"""What clusters do to a job that really trains: it ends Completed, and no sample is lost or counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clickmill.kube import kinds
from clickmill.kube.client import Cluster

from .click_logs import MOUNT, fill
from .conftest import DEADLINE_S, Kubectl, poll
from .kit import Kit
from .submitted import NAME, Job, trained

ROWS = 20_000
PASSES, LONGER = 12, 60
"""The second is for what takes its time while the job trains."""
KILL = """
for process in /proc/[0-9]*; do
  if tr '\\0' ' ' <$process/cmdline | grep -q 'clickmill [tp][rs]'; then kill -9 ${process#/proc/}; fi
done
"""
"""The process of the role; the launcher, PID 1, lives on and ends with its code."""

pytestmark = [pytest.mark.usefixtures("volcano"), pytest.mark.timeout(1800)]


@pytest.fixture
def job(tmp_path: Path, image: str, namespace: str, kubectl: Kubectl) -> Job:
    """Two servers and two trainers that read a log on a volume."""
    found = Job(tmp_path, image, namespace)
    found.run("data", "synth", "train.tsv", "--rows", str(ROWS))
    fill(kubectl, image, tmp_path / "train.tsv")
    (tmp_path / "train.tsv").unlink()
    return found


def submit(job: Job, **numbers: Any) -> None:
    job.submit(
        **{"epochs": PASSES, "pservers": 2, "trainers": 2, "data_path": "train_data/train.tsv", "more": MOUNT}
        | {"save_interval": PASSES}
        | numbers
    )


def of(status: dict[str, Any], pod: str) -> dict[str, Any]:
    """What the status says of a pod: `trainer-0`."""
    return next((each for each in status["pods"] if each["name"] == f"{NAME}-{pod}"), {})


@pytest.mark.parametrize("pod", ["trainer-0", "trainer-1", "pserver-0", "pserver-1"])
def test_a_process_that_is_killed(job: Job, kubectl: Kubectl, pod: str) -> None:
    submit(job)
    job.await_samples(ROWS)
    kubectl("exec", f"{NAME}-{pod}", "--", "sh", "-c", KILL)
    status = job.await_status(lambda status: of(status, pod).get("restarts") == 1, f"{pod} to be made again")
    assert any(reason["kind"] == "crash" for reason in status["reasons"])
    job.assert_exact(ROWS, PASSES)


@pytest.mark.parametrize("pod", ["trainer-0", "pserver-0", "pserver-1"])
def test_a_pod_that_is_deleted(job: Job, kubectl: Kubectl, pod: str) -> None:
    submit(job)
    job.await_samples(ROWS)
    kubectl("delete", "pod", f"{NAME}-{pod}")
    job.await_samples(ROWS + 1)
    job.assert_exact(ROWS, PASSES)
    assert job.job("status")["retries"] == 0, "nothing has failed"


def test_scaling_from_two_trainers_to_four_and_to_one(job: Job) -> None:
    submit(job, epochs=LONGER, save_interval=LONGER)
    job.await_samples(ROWS)
    for number in (4, 1):
        job.job("scale", "--trainers", str(number))
        status = job.await_status(
            lambda status, number=number: (
                status["phase"] == "Completed"  # type: ignore[misc]
                or (status["training"] and status["training"]["num_trainers"] == number)
            ),
            f"{number} trainers",
        )
        assert status["phase"] == "Running", "it was over before there were so many: give it more passes"
    job.assert_exact(ROWS, LONGER)


@pytest.fixture
def node_of_pserver_1(kit: Kit, cluster: Cluster) -> Iterator[None]:
    """Afterwards all nodes are there again, and take pods."""
    yield
    kit.up()
    for node in cluster.list(kinds.NODE):
        cluster.patch(kinds.NODE, node["metadata"]["name"], {"spec": {"unschedulable": None, "taints": None}})


def node_with(job: Job, pod: str) -> str:
    return str(of(job.job("status"), pod)["node"])


@pytest.mark.usefixtures("node_of_pserver_1")
def test_a_node_that_is_drained(job: Job, kubectl: Kubectl) -> None:
    submit(job)
    job.await_samples(ROWS)
    node = node_with(job, "pserver-1")
    kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=110s")
    job.assert_exact(ROWS, PASSES)
    assert node not in {pod["node"] for pod in job.job("status")["pods"]}


@pytest.mark.usefixtures("node_of_pserver_1")
@pytest.mark.parametrize("what_comes", ["the node is back", "somebody deletes the node"])
def test_a_node_that_loses_power(job: Job, kubectl: Kubectl, kit: Kit, what_comes: str) -> None:
    submit(job)
    job.await_samples(ROWS)
    node = node_with(job, "pserver-1")
    kit.lose_node(node)
    status = job.await_status(
        lambda status: [reason for reason in status["reasons"] if reason["kind"] == "node"], "it to be told"
    )
    told = next(reason for reason in status["reasons"] if reason["kind"] == "node")
    assert node in told["words"]
    assert f"kubectl delete node {node}" in told["remedy"]
    if what_comes == "the node is back":
        kit.up()
    else:
        kubectl("delete", "node", node)
    job.assert_exact(ROWS, PASSES)


def test_a_control_plane_that_goes_away_and_comes_back(job: Job, kit: Kit) -> None:
    submit(job, epochs=LONGER, save_interval=LONGER)
    before = trained(job.await_samples(ROWS))
    kit.stop_control_plane()
    kit.up()
    assert trained(job.await_samples(before + 1)) > before
    job.assert_exact(ROWS, LONGER)
    assert job.job("status")["retries"] == 0, "pods ran on"


@pytest.fixture
def third_node(kit: Kit, cluster: Cluster) -> Iterator[None]:
    """Afterwards there are as many nodes as before."""
    number = len(cluster.list(kinds.NODE))
    yield
    kit.up("--nodes", str(number))


@pytest.mark.usefixtures("third_node")
def test_a_gang_that_does_not_fit_starts_when_a_node_is_added(job: Job, kit: Kit, cluster: Cluster) -> None:
    nodes = cluster.list(kinds.NODE)
    # More than half of a node each: one pod to a node, and the gang has one more than there are nodes.
    cores = min(float(node["status"]["allocatable"]["cpu"]) for node in nodes)
    submit(job, cpu=f"{int(cores * 600)}m", epochs=1, save_interval=1, pservers=len(nodes), trainers=1)
    status = job.await_status(
        lambda status: [reason for reason in status["reasons"] if reason["kind"] == "resources"],
        "it to be told",
    )
    (told,) = [reason["words"] for reason in status["reasons"] if reason["kind"] == "resources"]
    assert f"{len(nodes)} of {len(nodes) + 1} pods of the gang fit" in told
    assert {pod["state"] for pod in status["pods"]} <= {"Pending"}
    kit.up("--nodes", str(len(nodes) + 1))
    poll(
        lambda: job.job("status")["phase"] in {"Running", "Completed"},
        "it to start",
        deadline_s=3 * DEADLINE_S,
    )
    job.assert_exact(ROWS, 1)
