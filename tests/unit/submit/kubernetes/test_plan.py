from __future__ import annotations

import pytest

from clickmill.config import parse_config
from clickmill.config.backend import parse_backend
from clickmill.errors import ConfigError
from clickmill.submit.kubernetes.plan import MAX_PACKAGE_BYTES, make_plan
from clickmill.submit.kubernetes.resources import amount

from .plans import BACKEND, CONFIG, plan_of


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
            "  volumes: [{name: My_Data, claim: c, mount: d}]\n",
            "`kubernetes.volumes.0.name`: must be lower-case",
        ),
        (
            "  volumes: [{name: d, claim: c, mount: d}, {name: d, claim: e, mount: e}]\n",
            "`kubernetes.volumes.1.name`: there are two volumes `d`",
        ),
        ("  output: {host_path: work}\n", "`kubernetes.output.host_path`: must be an absolute path"),
    ],
)
def test_what_kubernetes_does_not_take_is_named_with_its_line(backend: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"backend.yaml:\d+:\d+: ") as caught:
        plan_of(backend)
    assert words in str(caught.value)


def test_a_job_without_an_image_says_where_to_get_one() -> None:
    backend = parse_backend(BACKEND.replace("  image: registry.example/clickmill:1\n", "  port: 30240\n"))
    with pytest.raises(ConfigError, match="names no image"):
        make_plan(parse_config(CONFIG % ""), backend, {}, namespace="n", config_file="dnn")


def test_files_that_do_not_fit_into_a_config_map_say_where_to_put_them() -> None:
    with pytest.raises(ConfigError, match=r"largest: `big.bin` 1,000,001.*kubernetes.volumes"):
        plan_of(package={"big.bin": bytes(MAX_PACKAGE_BYTES + 1), "config.yaml": b""})


def test_a_file_whose_name_is_no_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"file `my model\.py` cannot travel under that name"):
        plan_of(package={"my model.py": b""})


@pytest.mark.parametrize(
    ("quantity", "value"), [("2", 2), ("500m", 0.5), ("1.5Gi", 1.5 * 2**30), ("3k", 3000), ("1M", 1e6)]
)
def test_quantities(quantity: str, value: float) -> None:
    assert amount(quantity) == value
