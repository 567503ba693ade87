"""`submit` on a real cluster: what it makes, changes and refuses."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from clickmill.errors import NotFoundError, RefusedError, StateError
from clickmill.kube import kinds
from clickmill.kube.client import Cluster
from clickmill.kube.kinds import kind_of
from clickmill.submit.kubernetes.api import JobPlan, manifest, manifest_yaml, submit

from .conftest import Kubectl, poll
from .jobs import job, phase, pod_names, pods, small_plan, with_trainers

pytestmark = pytest.mark.usefixtures("volcano")


def test_the_same_job_twice_changes_nothing(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace)
    first = submit(cluster, plan)
    poll(lambda: len(pods(cluster, plan)) == 4, "the pods")
    before = _versions(cluster, plan)
    second = submit(cluster, plan)
    assert (first.change, second.change) == ("created", "unchanged")
    assert {each.change for each in first.objects} == {"created"}
    assert {each.change for each in second.objects} == {"unchanged"}
    assert _versions(cluster, plan) == before


ALLOTTED = {
    "Service": {"clusterIPs", "ipFamilies", "ipFamilyPolicy"},
    "Job": {"selector", "template.metadata.labels", "template.spec.serviceAccount"},
    "PersistentVolumeClaim": {"storageClassName", "volumeName"},
}
"""What only the cluster can know, by kind of object, and the old name of `serviceAccountName`."""


@pytest.mark.parametrize("scheduler", ["volcano", "default"])
def test_every_field_that_the_cluster_fills_in_is_stated(
    cluster: Cluster, namespace: str, scheduler: str
) -> None:
    plan = small_plan(namespace, scheduler=scheduler)
    submit(cluster, plan)
    missing = {}
    for item in manifest(plan):
        found = cluster.get(kind_of(item), item["metadata"]["name"], namespace=namespace)
        assert found is not None
        kind = item["kind"]
        added = _fields(found.get("spec", {})) - _fields(item.get("spec", {}))
        allotted = ALLOTTED.get(kind, set()) if kind_of(item) != kinds.VOLCANO_JOB else set()
        missing[kind] = {field for field in added if not any(field.startswith(each) for each in allotted)}
    assert {kind: fields for kind, fields in missing.items() if fields} == {}


def _fields(value: Any, path: str = "") -> set[str]:
    """Paths of all values that are no mapping or list; items of a list are one and the same."""
    if isinstance(value, dict):
        return {
            field for key, each in value.items() for field in _fields(each, f"{path}.{key}".removeprefix("."))
        }
    if isinstance(value, list):
        return {field for each in value for field in _fields(each, path)}
    return {path}


def test_what_kubectl_applies_is_what_submit_applies(
    cluster: Cluster, namespace: str, kubectl: Kubectl
) -> None:
    plan = small_plan(namespace)
    kubectl("apply", "-f", "-", stdin=manifest_yaml(plan))
    applied = {each.name: each.change for each in submit(cluster, plan).objects}
    assert set(applied.values()) == {"unchanged"}
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=manifest_yaml(plan))


def test_kubectl_takes_over_what_submit_has_made(cluster: Cluster, namespace: str, kubectl: Kubectl) -> None:
    plan = small_plan(namespace)
    submit(cluster, plan)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest_yaml(plan))
    kubectl("apply", "-f", "-", stdin=manifest_yaml(with_trainers(plan, 3)))
    assert [task["replicas"] for task in job(cluster, plan)["spec"]["tasks"]] == [2, 3]


def test_another_number_of_trainers_scales_the_job(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace)
    submit(cluster, plan)
    poll(lambda: len(pods(cluster, plan)) == 4, "two servers and two trainers")
    uids = _uids(cluster, plan)
    assert submit(cluster, with_trainers(plan, 4)).change == "changed"
    poll(lambda: len(pods(cluster, plan)) == 6, "two more trainers")
    assert submit(cluster, with_trainers(plan, 1)).change == "changed"
    servers_and_chief = {"job-pserver-0", "job-pserver-1", "job-trainer-0"}
    poll(lambda: pod_names(cluster, plan) == servers_and_chief, "the servers and the chief alone")
    assert {name: uids[name] for name in servers_and_chief} == _uids(cluster, plan)


@pytest.mark.parametrize("scheduler", ["volcano", "default"])
def test_of_two_who_submit_at_once_one_wins_as_a_whole(
    cluster: Cluster, namespace: str, scheduler: str
) -> None:
    for attempt in range(4):
        name = f"job{attempt}"
        plans = [
            small_plan(namespace, name=name, pservers=number, trainers=number + 1, scheduler=scheduler)
            for number in (1, 2)
        ]
        with ThreadPoolExecutor(2) as pool:
            ends = [pool.submit(submit, cluster, plan) for plan in plans]
        errors = [end.exception() for end in ends]
        (refused,) = (error for error in errors if error is not None)
        (winner,) = (plan for plan, error in zip(plans, errors, strict=True) if error is None)
        assert isinstance(refused, StateError)
        _assert_is_whole(cluster, winner)


def test_trainers_that_two_submit_at_once_are_those_of_one(cluster: Cluster, namespace: str) -> None:
    submit(cluster, small_plan(namespace))
    for _ in range(4):
        plans = [small_plan(namespace, trainers=number) for number in (3, 4)]
        with ThreadPoolExecutor(2) as pool:
            ends = [pool.submit(submit, cluster, plan) for plan in plans]
        assert {end.result().job for end in ends} == {"job"}
        number = job(cluster, plans[0])["spec"]["tasks"][1]["replicas"]
        _assert_is_whole(cluster, with_trainers(plans[0], number))


def _assert_is_whole(cluster: Cluster, plan: JobPlan) -> None:
    """Every object that tells numbers of pods is of this plan; nobody's turn is left behind."""
    for item in manifest(plan):
        found = cluster.get(kind_of(item), item["metadata"]["name"], namespace=plan.namespace)
        assert found is not None
        assert _numbers(found) == _numbers(item)
    assert cluster.get(kinds.CONFIG_MAP, plan.names.turn, namespace=plan.namespace) is None


def _numbers(item: Any) -> Any:
    spec = item.get("spec", {})
    tasks = [(task["name"], task["replicas"]) for task in spec.get("tasks", ())]
    return tasks, spec.get("completions"), item.get("data") if item["kind"] == "ConfigMap" else None


def test_another_template_is_refused_with_the_way_out(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace)
    submit(cluster, plan)
    before = _versions(cluster, plan)
    other = small_plan(namespace, more="  env: {GLOG_v: '1'}\n")
    with pytest.raises(StateError, match="only its number of trainers can change") as caught:
        submit(cluster, other)
    assert "GLOG_v" in str(caught.value)
    assert "--replace" in (caught.value.hint or "")
    assert _versions(cluster, plan) == before


def test_other_files_are_another_template(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace)
    submit(cluster, plan)
    with pytest.raises(StateError, match=r"file `config\.yaml` is another one"):
        submit(cluster, replace(plan, package={"config.yaml": b"mode: other\n"}))
    package = cluster.get(kinds.CONFIG_MAP, plan.names.package, namespace=namespace)
    assert package is not None
    assert package["data"]["config.yaml"] == plan.package["config.yaml"].decode()


def test_replace_makes_the_job_anew(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace)
    submit(cluster, plan)
    poll(lambda: len(pods(cluster, plan)) == 4, "the pods")
    old = _uids(cluster, plan)
    other = small_plan(namespace, more="  env: {GLOG_v: '1'}\n")
    assert submit(cluster, other, replace=True).change == "created"
    poll(lambda: len(pods(cluster, plan)) == 4, "the new pods")
    assert not set(old.values()) & set(_uids(cluster, plan).values())


def test_a_job_that_does_not_fit_has_no_pods_and_says_why(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace, more="")
    servers, trainers = plan.roles
    huge = replace(servers.request, requests={"cpu": "100000", "memory": "16Mi"}, limits={})
    plan = replace(plan, roles=(replace(servers, request=huge), trainers))
    submit(cluster, plan)

    def reason() -> str:
        groups = cluster.list(kinds.POD_GROUP, namespace=namespace)
        events = cluster.list(kinds.EVENT, namespace=namespace)
        return " ".join(event["message"] for event in events if groups and "resource" in event["message"])

    poll(reason, "an event that says what is short")
    assert pods(cluster, plan) == []
    assert phase(cluster, plan) == "Pending"


def test_nothing_is_made_where_the_cluster_would_refuse_the_job(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace, more="  queue: nobody-made-this\n")
    with pytest.raises(RefusedError, match="nobody-made-this"):
        submit(cluster, plan)
    assert all(cluster.get(kind_of(item), item["metadata"]["name"], namespace=namespace) is None
               for item in manifest(plan))  # fmt: skip


def test_pods_that_the_namespace_does_not_allow_are_refused_before_anything_is_made(
    cluster: Cluster, namespace: str, kubectl: Kubectl
) -> None:
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    plan = small_plan(namespace, more="  output: {host_path: /home/work}\n")
    with pytest.raises(RefusedError, match="violates PodSecurity") as caught:
        submit(cluster, plan)
    assert "use a claim" in (caught.value.hint or "")
    assert cluster.get(kinds.SERVICE, plan.names.service, namespace=namespace) is None


def test_our_pods_keep_to_the_restricted_standard(cluster: Cluster, namespace: str, kubectl: Kubectl) -> None:
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    plan = small_plan(namespace)
    submit(cluster, plan)
    poll(lambda: len(pods(cluster, plan)) == 4, "the pods")


def test_a_namespace_that_is_not_there_is_named(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError, match="there is no namespace `clickmill-absent`") as caught:
        submit(cluster, small_plan("clickmill-absent"))
    assert caught.value.hint == "`kubectl create namespace clickmill-absent`"


def test_the_token_of_a_job_is_left_alone(cluster: Cluster, namespace: str, kubectl: Kubectl) -> None:
    plan = small_plan(namespace)
    submit(cluster, plan)
    secret = cluster.get(kinds.SECRET, plan.names.token, namespace=namespace)
    assert secret is not None
    cluster.replace({**secret, "data": {"token": "dG9rZW4="}})
    submit(cluster, plan)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest_yaml(plan))
    kubectl("apply", "-f", "-", stdin=manifest_yaml(plan))
    found = json.loads(kubectl("get", "secret", plan.names.token, "-o", "json"))
    assert found["data"] == {"token": "dG9rZW4="}


def test_credentials_are_in_a_secret_and_nowhere_else(cluster: Cluster, namespace: str) -> None:
    plan = small_plan(namespace)
    submit(cluster, plan, access={"CLICKMILL_FS_UGI": "me,very-secret"})
    secret = cluster.get(kinds.SECRET, plan.names.access, namespace=namespace)
    assert secret is not None
    assert set(secret["data"]) == {"CLICKMILL_FS_UGI"}
    for item in manifest(plan):
        live = cluster.get(kind_of(item), item["metadata"]["name"], namespace=namespace)
        assert "very-secret" not in json.dumps(live)


def _versions(cluster: Cluster, plan: JobPlan) -> dict[str, Any]:
    """Generations of everything that submit makes; what Volcano writes into a status does not count."""
    return {
        item["kind"] + item["metadata"]["name"]: (live["metadata"]["uid"], live["metadata"].get("generation"))
        for item in manifest(plan)
        if (live := cluster.get(kind_of(item), item["metadata"]["name"], namespace=plan.namespace))
    }


def _uids(cluster: Cluster, plan: JobPlan) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods(cluster, plan)}
