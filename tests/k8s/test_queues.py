"""Several jobs on one cluster: what docs/guides/kubernetes.md says of queues, priorities and shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clickmill.jobs.status import job_status
from clickmill.kube import kinds
from clickmill.kube.client import Cluster
from clickmill.submit.kubernetes.api import JobPlan

from .conftest import poll
from .jobs import phase, small_plan
from .kit import Kit
from .puppets import start, states, tell_to_end, until_running
from .queues import queue

OURS = Path(__file__).parents[2] / "deploy" / "k8s" / "volcano-scheduler.conf"
PLACES = 6
"""Pods that the cluster has room for."""
OVERUSED = "resource in cluster is overused"
QUEUE_FULL = "queue resource quota insufficient"

pytestmark = [pytest.mark.usefixtures("volcano", "image", "kubectl"), pytest.mark.timeout(900)]


@pytest.fixture(params=["the chart's", "ours"])
def scheduler(request: pytest.FixtureRequest, kit: Kit) -> Iterator[str]:
    """Whose configuration Volcano's scheduler has."""
    before = kit.scheduler_settings()
    kit.schedule_by(OURS.read_text() if request.param == "ours" else before)
    yield request.param
    kit.schedule_by(before)


@pytest.fixture
def place(cluster: Cluster, kit: Kit) -> Iterator[str]:
    """Cores of which the cluster, of a single node, has six times as many, and not seven times."""
    number = len(cluster.list(kinds.NODE))
    kit.up("--nodes", "1")
    (node,) = cluster.list(kinds.NODE)
    yield f"{int(float(node['status']['allocatable']['cpu']) * 1000 / PLACES)}m"
    kit.up("--nodes", str(number))


@pytest.fixture
def queues(cluster: Cluster, namespace: str, place: str) -> Iterator[tuple[str, str, str]]:
    """Two queues of the same weight, and one that may have three places."""
    three = {"cpu": f"{3 * int(place[:-1])}m", "memory": "1Gi"}
    with (
        queue(cluster, f"{namespace}-a", reclaimable=True) as first,
        queue(cluster, f"{namespace}-b", reclaimable=True) as second,
        queue(cluster, f"{namespace}-small", capability=three) as small,
    ):
        yield first, second, small
        for job in cluster.list(kinds.VOLCANO_JOB, namespace=namespace):
            cluster.delete(kinds.VOLCANO_JOB, job["metadata"]["name"], namespace=namespace)


@pytest.fixture
def urgent(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A PriorityClass above that of other jobs."""
    group = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    cluster.create({**group, "metadata": {"name": namespace}, "value": 1000})
    yield namespace
    cluster.delete(kinds.PRIORITY_CLASS, namespace)


def until(cluster: Cluster, plan: JobPlan, *, running: int, pending: int) -> None:
    """The job has so many pods of each kind, and no others."""

    def claim() -> bool:
        found = sorted(states(cluster, plan).values())
        return found == ["Pending"] * pending + ["Running"] * running

    poll(claim, f"{running} running and {pending} pending pods of {plan.names.job}")


def until_told(cluster: Cluster, plan: JobPlan, words: str) -> None:
    """`clickmill job status` says so."""

    def claim() -> bool:
        reasons = job_status(cluster.within(plan.namespace), plan.names.job).reasons
        return any(words in reason.words for reason in reasons)

    poll(claim, f"`{words}` to be told of {plan.names.job}")


def until_looked_at(cluster: Cluster, plan: JobPlan, words: str) -> None:
    """The scheduler has looked at the job, and has left it where it is."""

    def claim() -> bool:
        events = cluster.list(kinds.EVENT, namespace=plan.namespace)
        about = [each for each in events if each["involvedObject"]["name"].startswith(f"{plan.names.job}-")]
        return any(words in each["message"] for each in about)

    poll(claim, f"an event with `{words}` of {plan.names.job}")


def until_kept_out(cluster: Cluster, plan: JobPlan) -> None:
    """The job is not let into its queue, for the cluster is full."""
    until_looked_at(cluster, plan, OVERUSED)
    until_told(cluster, plan, "0 of 2 pods of the gang fit")


def end(cluster: Cluster, plan: JobPlan) -> None:
    """Training is done; servers leave last, and the job with them."""
    for pod in states(cluster, plan):
        if "-pserver-" in pod:
            tell_to_end(plan.namespace, pod, 0)
    poll(lambda: phase(cluster, plan) == "Completed", f"{plan.names.job} to be Completed")


def test_a_second_job_waits_as_a_whole_and_starts_when_the_first_ends(
    cluster: Cluster, namespace: str, place: str, scheduler: str
) -> None:
    first, second, third = (
        small_plan(namespace, name=name, cpu=place, trainers=trainers)
        for name, trainers in (("first", 2), ("second", 2), ("third", 1))
    )
    start(cluster, first)
    until_running(cluster, first, 4)
    start(cluster, second)
    until(cluster, second, running=0, pending=4)
    until_looked_at(cluster, second, "gang unschedulable")
    until_told(cluster, second, "2 of 3 pods of the gang fit")
    start(cluster, third)
    until_looked_at(cluster, third, QUEUE_FULL if scheduler == "ours" else OVERUSED)
    until(cluster, third, running=0, pending=0)
    until(cluster, second, running=0, pending=4)
    end(cluster, first)
    until_running(cluster, second, 4)


@pytest.mark.usefixtures("scheduler")
def test_a_job_in_a_full_queue_has_no_pods_until_there_is_room(
    cluster: Cluster, namespace: str, place: str, queues: tuple[str, str, str]
) -> None:
    more = f"  queue: {queues[2]}\n"
    first = small_plan(namespace, name="first", cpu=place, trainers=1, more=more)
    second = small_plan(namespace, name="second", cpu=place, pservers=1, trainers=1, more=more)
    start(cluster, first)
    until_running(cluster, first, 3)
    start(cluster, second)
    until_looked_at(cluster, second, QUEUE_FULL)
    until_told(cluster, second, f"queue `{queues[2]}` is full")
    until(cluster, second, running=0, pending=0)
    end(cluster, first)
    until_running(cluster, second, 2)


def test_a_job_of_higher_priority_takes_room_of_trainers(
    cluster: Cluster, namespace: str, place: str, urgent: str, scheduler: str
) -> None:
    first = small_plan(namespace, name="first", cpu=place, pservers=1, trainers=5)
    more = f"  priority_class: {urgent}\n"
    second = small_plan(namespace, name="second", cpu=place, pservers=1, trainers=1, more=more)
    start(cluster, first)
    until_running(cluster, first, PLACES)
    start(cluster, second)
    if scheduler == "ours":
        until_running(cluster, second, 2)
        until(cluster, first, running=4, pending=2)
        assert {states(cluster, first)[f"first-{pod}-0"] for pod in ("pserver", "trainer")} == {"Running"}
        end(cluster, second)
        until_running(cluster, first, PLACES)
    else:
        until_kept_out(cluster, second)
        until_running(cluster, first, PLACES)
        end(cluster, first)
        until_running(cluster, second, 2)


def test_a_queue_takes_its_share_back_from_trainers_of_another(
    cluster: Cluster, namespace: str, place: str, queues: tuple[str, str, str], scheduler: str
) -> None:
    first, second = (
        small_plan(namespace, name=name, cpu=place, pservers=1, trainers=trainers, more=f"  queue: {queue}\n")
        for name, trainers, queue in (("first", 5, queues[0]), ("second", 2, queues[1]))
    )
    start(cluster, first)
    until_running(cluster, first, PLACES)
    start(cluster, second)
    if scheduler == "ours":
        until(cluster, second, running=2, pending=1)
        until(cluster, first, running=4, pending=2)
        assert states(cluster, first)["first-pserver-0"] == "Running"
    else:
        until_kept_out(cluster, second)
        until_running(cluster, first, PLACES)
    end(cluster, first)
    until_running(cluster, second, 3)
