from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.config import parse_config
from clickmill.config.backend import parse_backend
from clickmill.errors import ConfigError
from clickmill.submit.kubernetes.manifest import manifest
from clickmill.submit.kubernetes.plan import MAX_PACKAGE_BYTES, make_plan
from clickmill.submit.kubernetes.resources import amount

from ..jobs import request, write_job
from .plans import BACKEND, CONFIG, collective_plan, plan_of


def test_name_is_a_label() -> None:
    assert plan_of().names.job == "criteo-job"


def test_cores_of_submit_count_where_resources_say_nothing() -> None:
    plan = plan_of("  resources: {trainer: {cpu: 500m}}\n")
    assert plan.role("pserver").request.requests == {"cpu": "1", "memory": "1Gi"}
    assert plan.role("trainer").request.requests["cpu"] == "500m"


def test_memory_that_is_asked_for_is_also_the_limit() -> None:
    plan = plan_of("  resources: {pserver: {memory: 4Gi}, trainer: {memory: 2Gi, memory_limit: 3Gi}}\n")
    assert plan.role("pserver").request.limits == {"memory": "4Gi"}
    assert plan.role("trainer").request.limits == {"memory": "3Gi"}
    assert plan_of().role("pserver").request.limits == {}


def test_cards_are_asked_for_by_workers_on_cards() -> None:
    plan = plan_of(runner=", fleet_mode: collective, device: gpu")
    assert plan.role("worker").request.limits == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        (
            "  env: {CLICKMILL_ROLE: TRAINER}\n",
            "`kubernetes.env.CLICKMILL_ROLE`: is what tells a pod its place",
        ),
        (
            "  volumes: [{name: d, claim: c, mount: d}, {name: d, claim: e, mount: e}]\n",
            "`kubernetes.volumes.1.name`: there are two volumes `d`",
        ),
        (
            "  volumes: [{name: d, claim: c, mount: d}, {name: e, claim: e, mount: /job/d/}]\n",
            "`kubernetes.volumes.1.mount`: is `/job/d`, where volume `d` is mounted",
        ),
        (
            "  resources: {trainer: {memory: 4Gi, memory_limit: 1Gi}}\n",
            "`kubernetes.resources.trainer.memory_limit`: is 1Gi, but a trainer asks for 4Gi",
        ),
        (
            "  resources: {pserver: {memory_limit: 512Mi}}\n",
            "`kubernetes.resources.pserver.memory_limit`: is 512Mi, but a pserver asks for 1Gi",
        ),
        (
            "  resources: {trainer: {cpu_limit: 1500m}}\n",
            "`kubernetes.resources.trainer.cpu_limit`: is 1500m, but a trainer asks for 2;",
        ),
    ],
)
def test_what_kubernetes_does_not_take_is_named_with_its_line(backend: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"backend.yaml:\d+:\d+: ") as caught:
        plan_of(backend)
    assert words in str(caught.value)


def test_limits_of_a_role_that_the_job_does_not_have_are_of_no_matter() -> None:
    assert plan_of("  resources: {worker: {memory: 4Gi, memory_limit: 1Gi}}\n").role("trainer")


def test_what_does_not_go_together_is_told_with_all_else_that_is_wrong(folder: Path) -> None:
    write_job(
        folder, CONFIG % "", BACKEND.replace("  image: registry.example/clickmill:1\n", "") + TWO_MOUNTS
    )
    with pytest.raises(ConfigError) as error:
        request().check()
    found = {problem.key for problem in error.value.problems}
    assert found == {"kubernetes.image", "kubernetes.volumes.1.mount"}


TWO_MOUNTS = "  volumes: [{name: d, claim: c, mount: d}, {name: e, claim: e, mount: d}]\n"


def test_retries_of_many_workers_stay_a_number_that_kubernetes_takes() -> None:
    plan = collective_plan("  scheduler: default\n  max_restarts: 2147483547\n")
    (job,) = [item for item in manifest(plan) if item["kind"] == "Job"]
    assert job["spec"]["backoffLimit"] == 2**31 - 1


def test_a_job_without_an_image_says_where_to_get_one() -> None:
    backend = parse_backend(BACKEND.replace("  image: registry.example/clickmill:1\n", "  port: 30240\n"))
    with pytest.raises(ConfigError, match="name the image that pods run"):
        make_plan(parse_config(CONFIG % ""), backend, {}, namespace="n", config_file="dnn")


def test_files_that_do_not_fit_into_a_config_map_say_where_to_put_them() -> None:
    with pytest.raises(ConfigError, match=r"largest: `big.bin` 1,000,001.*kubernetes.volumes"):
        plan_of(package={"big.bin": bytes(MAX_PACKAGE_BYTES + 1), "config.yaml": b""})


def test_a_file_whose_name_is_no_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"file `my model\.py` cannot travel under that name"):
        plan_of(package={"my model.py": b""})


@pytest.mark.parametrize("name", ["..a", "a" * 254, "."])
def test_a_file_whose_name_kubernetes_refuses_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot travel under that name"):
        plan_of(package={name: b""})


@pytest.mark.parametrize(
    ("quantity", "value"), [("2", 2), ("500m", 0.5), ("1.5Gi", 1.5 * 2**30), ("3k", 3000), ("1M", 1e6)]
)
def test_quantities(quantity: str, value: float) -> None:
    assert amount(quantity) == value
