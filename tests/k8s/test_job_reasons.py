"""`clickmill job status` on a real cluster: why a job does not run, in words. No image is needed for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clickmill.jobs.delete import delete_job
from clickmill.jobs.status import job_status
from clickmill.kube import kinds
from clickmill.kube.client import Cluster
from clickmill.submit.kubernetes.api import JobPlan, submit
from clickmill.submit.kubernetes.manifest import surroundings, workloads

from .conftest import poll
from .jobs import small_plan
from .queues import queue

SCHEDULERS = ("volcano", "default")
pytestmark = pytest.mark.usefixtures("volcano")


def told(cluster: Cluster, namespace: str, kind: str) -> str:
    """The words of this kind about the job, when there are some."""
    found: list[str] = []

    def is_told() -> bool:
        reasons = job_status(cluster.within(namespace), "job").reasons
        found[:] = [reason.words for reason in reasons if reason.kind == kind]
        return bool(found)

    poll(is_told, f"{kind} to be told")
    return found[0]


def asking_for(plan: JobPlan, cpu: str) -> JobPlan:
    """The job with trainers that ask for so many cores."""
    servers, trainers = plan.roles
    request = replace(trainers.request, requests={"cpu": cpu, "memory": "16Mi"}, limits={})
    return replace(plan, roles=(servers, replace(trainers, request=request)))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_job_that_does_not_fit_says_what_each_node_lacks(
    cluster: Cluster, namespace: str, scheduler: str
) -> None:
    submit(cluster, asking_for(small_plan(namespace, scheduler=scheduler, trainers=1), "100000"))
    words = told(cluster, namespace, "resources")
    assert "a trainer asks for 100000 cpu" in words
    for node in cluster.list(kinds.NODE):
        assert f"node `{node['metadata']['name']}`" in words or "more nodes" in words
    if scheduler == "volcano":
        assert words.startswith("2 of 3 pods of the gang fit")
        assert job_status(cluster.within(namespace), "job").num_running == 0


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_image_that_is_not_there_is_told(cluster: Cluster, namespace: str, scheduler: str) -> None:
    plan = small_plan(namespace, scheduler=scheduler)
    settings = plan.settings.model_copy(update={"image": "clickmill-absent:test"})
    submit(cluster, replace(plan, settings=settings))
    words = told(cluster, namespace, "image")
    assert "image `clickmill-absent:test` cannot be had" in words


def test_a_claim_that_is_not_there_is_told(cluster: Cluster, namespace: str) -> None:
    more = "  volumes: [{name: data, claim: absent, mount: train_data}]\n"
    submit(cluster, small_plan(namespace, more=more))
    assert told(cluster, namespace, "volume") == "there is no claim `absent`"


def test_a_storage_class_that_is_not_there_is_told(cluster: Cluster, namespace: str) -> None:
    submit(cluster, small_plan(namespace, more="  output: {size: 1Gi, storage_class: absent}\n"))
    assert "claim `job-output` is pending" in told(cluster, namespace, "volume")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_quota_that_is_used_up_is_told(cluster: Cluster, namespace: str, scheduler: str) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": namespace},
        "spec": {"hard": {"pods": "1"}},
    }
    cluster.create(quota)
    plan = small_plan(namespace, scheduler=scheduler)
    for item in (*surroundings(plan), *workloads(plan)):  # `submit` would have told before
        cluster.apply(item)
    words = told(cluster, namespace, "quota")
    assert words.startswith("pods cannot be made: exceeded quota: small")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_missing_account_is_told(cluster: Cluster, namespace: str, scheduler: str) -> None:
    plan = small_plan(namespace, scheduler=scheduler)
    for item in (*surroundings(plan), *workloads(plan)):
        if item["kind"] != "ServiceAccount":
            cluster.apply(item)
    assert 'serviceaccount "job" not found' in told(cluster, namespace, "access")


def test_a_full_queue_is_told(cluster: Cluster, namespace: str) -> None:
    with queue(cluster, namespace, capability={"cpu": "20m"}):
        submit(cluster, small_plan(namespace, more=f"  queue: {namespace}\n"))
        words = told(cluster, namespace, "queue")
        assert f"queue `{namespace}` is full: 0 cpu of 0.02 cpu are taken, and it asks for 0.03 cpu" in words
        delete_job(cluster.within(namespace), "job", [].append, is_output_deleted=True)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_everything_of_a_job_is_deleted_and_nothing_else(
    cluster: Cluster, namespace: str, scheduler: str
) -> None:
    here = cluster.within(namespace)
    before = _objects(cluster, namespace)
    submit(cluster, small_plan(namespace, scheduler=scheduler, name="other"))
    other = _objects(cluster, namespace)
    submit(cluster, small_plan(namespace, scheduler=scheduler))
    poll(lambda: job_status(here, "job").pods, "pods")
    deleted = delete_job(here, "job", [].append, is_output_deleted=False)
    assert deleted.kept == ("job-output",)
    assert job_status(here, "job").job.phase == "Deleted"
    delete_job(here, "job", [].append, is_output_deleted=True)
    poll(lambda: _objects(cluster, namespace) == other, "the other job's objects alone")
    delete_job(here, "other", [].append, is_output_deleted=True)
    poll(lambda: _objects(cluster, namespace) == before, "what was there before")


def _objects(cluster: Cluster, namespace: str) -> set[tuple[str, str]]:
    found = (
        kinds.SERVICE, kinds.SECRET, kinds.CONFIG_MAP, kinds.CLAIM, kinds.SERVICE_ACCOUNT, kinds.ROLE,
        kinds.ROLE_BINDING, kinds.NETWORK_POLICY, kinds.JOB, kinds.VOLCANO_JOB,
    )  # fmt: skip
    return {
        (kind.resource, item["metadata"]["name"])
        for kind in found
        for item in cluster.list(kind, namespace=namespace)
        # Volcano gives the pods of a job a Service and a ConfigMap of its own, which go with the job.
        if not item["metadata"].get("ownerReferences")
    }
