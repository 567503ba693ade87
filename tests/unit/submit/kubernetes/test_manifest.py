from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from lightkube.codecs import from_dict
from lightkube.models.core_v1 import PodTemplateSpec

from clickmill.kube import kinds
from clickmill.kube.kinds import kind_of
from clickmill.submit.kubernetes.manifest import manifest, manifest_yaml
from clickmill.submit.kubernetes.plan import JobPlan

from ..conftest import Reader
from .plans import collective_plan, plan_of

GOLDEN = Path(__file__).parent / "golden"
RICH = """\
  queue: research
  priority_class: high
  image_pull_secrets: [registry]
  node_selector: {disk: ssd}
  tolerations: [{key: batch, operator: Exists, effect: NoSchedule}]
  resources:
    pserver: {memory: 4Gi, ephemeral_storage: 2Gi}
    trainer: {cpu: 500m, memory: 2Gi, memory_limit: 3Gi}
  output: {host_path: /home/work}
  volumes:
  - {name: data, claim: criteo, mount: train_data}
  - {name: more, nfs: {server: files, path: /export}, mount: /more, read_only: false}
  env: {GLOG_v: "0"}
  insecure: true
"""
PLANS = {
    "standard": plan_of(),
    "rich": plan_of(RICH),
    "plain": plan_of("  scheduler: default\n"),
    "collective": collective_plan(),
}


def _workloads(plan: JobPlan) -> list[dict[str, Any]]:
    return [item for item in manifest(plan) if kind_of(item) in {kinds.JOB, kinds.VOLCANO_JOB}]


def _templates(plan: JobPlan) -> list[dict[str, Any]]:
    return [
        part["template"] for item in _workloads(plan) for part in item["spec"].get("tasks", [item["spec"]])
    ]


@pytest.mark.parametrize("name", PLANS)
def test_manifest_is_the_golden_one(name: str) -> None:
    """`CLICKMILL_WRITE_GOLDEN=1 pytest tests/unit/submit/kubernetes` writes them anew."""
    path = GOLDEN / f"{name}.yaml"
    text = manifest_yaml(PLANS[name])
    if os.environ.get("CLICKMILL_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", PLANS)
def test_yaml_says_what_is_applied(name: str) -> None:
    assert list(yaml.safe_load_all(manifest_yaml(PLANS[name]))) == manifest(PLANS[name])


ODD = """\
  env: {LEARNING_RATE: "1e-5", COMMIT: "1234e56", O: "0o17", N: n, F: "+.5", T: "yes", E: ""}
  node_selector: {"on": "off", "1e3": "0x1"}
  queue: y
"""
ODD_FILES = {
    "config.yaml": b"mode: train \n\tb\n\n",
    **{
        f"{number}": text
        for number, text in enumerate([b"1e5", b"12e03", b"0o17", b"n", b"a\r\n b\r\n", b""])
    },
    "y": b"n",
}


def test_kubectl_reads_what_is_applied(read_by_kubectl: Reader) -> None:
    for plan in (*PLANS.values(), plan_of(ODD, package=ODD_FILES)):
        assert read_by_kubectl(manifest_yaml(plan)) == manifest(plan)


@pytest.mark.parametrize("name", PLANS)
def test_objects_are_what_kubernetes_knows(name: str) -> None:
    """Each field is known to the models, and of its type: what they do not know they drop."""
    for item in manifest(PLANS[name]):
        if kind_of(item) != kinds.VOLCANO_JOB:
            assert from_dict(item).to_dict() == item
    for template in _templates(PLANS[name]):
        assert PodTemplateSpec.from_dict(template).to_dict() == template


@pytest.mark.parametrize("name", PLANS)
def test_every_object_and_pod_has_the_labels_of_the_job(name: str) -> None:
    plan = PLANS[name]
    for item in [*manifest(plan), *_templates(plan)]:
        assert item["metadata"]["labels"].items() >= plan.names.labels.items()
    assert all(item["metadata"]["namespace"] == "team" for item in manifest(plan))


@pytest.mark.parametrize("name", PLANS)
def test_pods_may_do_little(name: str) -> None:
    for template in _templates(PLANS[name]):
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = spec["containers"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert not security["allowPrivilegeEscalation"]


def test_no_secret_of_a_manifest_has_data() -> None:
    for plan in PLANS.values():
        for item in manifest(plan):
            if kind_of(item) == kinds.SECRET:
                assert not {"data", "stringData"} & set(item)


@pytest.mark.parametrize(
    ("plan", "has_token"),
    [(plan_of(), True), (collective_plan(), False), (plan_of("  insecure: true\n"), False)],
)
def test_job_without_a_token_has_neither_its_secret_nor_a_right_to_it(plan: JobPlan, has_token: bool) -> None:
    items = manifest(plan)
    secrets = [item["metadata"]["name"] for item in items if item["kind"] == "Secret"]
    (role,) = [item for item in items if item["kind"] == "Role"]
    named = [rule.get("resourceNames") for rule in role["rules"]]
    assert (secrets == ["criteo-job-token"]) is (["criteo-job-token"] in named) is has_token


def test_labels_and_host_names_of_the_seeds_jobs() -> None:
    servers, trainers = _templates(PLANS["standard"])
    assert servers["metadata"]["labels"]["paddle-job-pserver"] == "criteo-job"
    assert trainers["metadata"]["labels"]["paddle-job"] == "criteo-job"
    assert servers["spec"]["subdomain"] == "criteo-job-pods"


@settings(max_examples=20)
@given(servers=st.integers(1, 50), trainers=st.integers(1, 50))
def test_the_gang_is_all_servers_and_one_trainer(servers: int, trainers: int) -> None:
    plan = plan_of_size(servers, trainers)
    (job,) = _workloads(plan)
    tasks = job["spec"]["tasks"]
    assert job["spec"]["minAvailable"] == servers + 1 == sum(task["minAvailable"] for task in tasks)
    assert [(task["name"], task["replicas"]) for task in tasks] == [
        ("pserver", servers),
        ("trainer", trainers),
    ]
    assert all(task["minAvailable"] <= task["replicas"] for task in tasks)


@settings(max_examples=20)
@given(servers=st.integers(1, 50), trainers=st.integers(1, 50))
def test_other_numbers_of_servers_and_trainers_are_the_same_template(servers: int, trainers: int) -> None:
    (old,), (new,) = _workloads(plan_of_size(2, 2)), _workloads(plan_of_size(servers, trainers))
    assert old["metadata"]["annotations"] == new["metadata"]["annotations"]
    assert [task["template"] for task in old["spec"]["tasks"]] == [
        task["template"] for task in new["spec"]["tasks"]
    ]


def test_other_files_are_another_template() -> None:
    digests = {
        job["metadata"]["annotations"]["clickmill.io/template"]
        for plan in (plan_of(), plan_of(package={"config.yaml": b"mode: other\n"}))
        for job in _workloads(plan)
    }
    assert len(digests) == 2


def plan_of_size(servers: int, trainers: int) -> JobPlan:
    from dataclasses import replace

    plan = PLANS["standard"]
    old_servers, old_trainers = plan.roles
    return replace(
        plan,
        roles=(
            replace(old_servers, replicas=servers, min_available=servers),
            replace(old_trainers, replicas=trainers),
        ),
    )


def test_files_that_are_no_text_travel_as_bytes() -> None:
    plan = plan_of(package={"config.yaml": b"a: 1\n", "words.bin": b"\xff\x00"})
    (item,) = [each for each in manifest(plan) if each["metadata"]["name"] == "criteo-job-package"]
    assert (item["data"], item["binaryData"]) == ({"config.yaml": "a: 1\n"}, {"words.bin": "/wA="})


def test_workers_of_a_collective_job_are_all_of_the_gang() -> None:
    (job,) = _workloads(PLANS["collective"])
    (task,) = job["spec"]["tasks"]
    assert (task["name"], task["replicas"], task["minAvailable"], job["spec"]["minAvailable"]) == (
        "worker",
        2,
        2,
        2,
    )


def test_output_that_one_node_can_write_keeps_the_pods_together() -> None:
    for template in _templates(plan_of("  output: {access_mode: ReadWriteOnce}\n")):
        (term,) = template["spec"]["affinity"]["podAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert term["topologyKey"] == "kubernetes.io/hostname"


def test_output_on_a_node_brings_the_pods_there() -> None:
    for template in _templates(plan_of("  output: {host_path: /home/work}\n  node_selector: {disk: ssd}\n")):
        assert template["spec"]["nodeSelector"] == {"disk": "ssd", "nodeType": "model"}


@pytest.mark.parametrize(
    ("text", "is_large"),
    [("a" * 200_000, False), ("a" * 262_144, True), ("<" * 50_000, True), ("é" * 140_000, True)],
)
def test_manifest_that_kubectl_cannot_keep_in_an_annotation_names_the_way_out(
    text: str, is_large: bool
) -> None:
    plan = plan_of(package={"config.yaml": b"mode: train\n", "model.py": text.encode()})
    first = manifest_yaml(plan).splitlines()[1]
    assert ("`kubectl apply --server-side -f FILE`" in first) == is_large
    assert ("`kubectl apply -f FILE`" in first) != is_large
