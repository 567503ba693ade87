from __future__ import annotations

from typing import Any

import pytest

from clickmill.cli.cluster_check import _show
from clickmill.submit.kubernetes.check.finding import Finding
from clickmill.submit.kubernetes.check.objects import check_image, check_named
from clickmill.submit.kubernetes.check.room import is_allowed, place

from ...kube.api_server import serving, status
from .plans import plan_of


def _node(name: str = "n1", **spec: Any) -> dict[str, Any]:
    labels = spec.pop("labels", {})
    images = [{"names": names} for names in spec.pop("images", [])]
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"images": images}}


SPEC = {"tolerations": [{"key": "batch", "operator": "Exists", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("node", "spec", "is_fine"),
    [
        (_node(), SPEC, True),
        (_node(unschedulable=True), SPEC, False),
        (_node(labels={"nodeType": "model"}), {**SPEC, "nodeSelector": {"nodeType": "model"}}, True),
        (_node(), {**SPEC, "nodeSelector": {"nodeType": "model"}}, False),
        (_node(taints=[{"key": "batch", "effect": "NoSchedule"}]), SPEC, True),
        (_node(taints=[{"key": "gpu", "effect": "NoSchedule"}]), SPEC, False),
        (_node(taints=[{"key": "gpu", "effect": "PreferNoSchedule"}]), SPEC, True),
    ],
)
def test_where_pods_may_come(node: dict[str, Any], spec: dict[str, Any], is_fine: bool) -> None:
    assert is_allowed(node, spec) is is_fine


def test_a_gang_fits_when_every_pod_finds_a_node() -> None:
    free = {"n1": {"cpu": 2.0, "memory": 4.0}, "n2": {"cpu": 2.0, "memory": 4.0}}
    assert place(free, [{"cpu": 1.0, "memory": 1.0}] * 4) is None
    assert place(free, [{"cpu": 1.5, "memory": 1.0}] * 3) == {"cpu": 1.5, "memory": 1.0}
    assert place(free, [{"cpu": 1.0, "nvidia.com/gpu": 1.0}]) == {"cpu": 1.0, "nvidia.com/gpu": 1.0}


@pytest.mark.parametrize(
    ("image", "names", "state"),
    [
        ("clickmill:dev", ["docker.io/library/clickmill:dev"], "ok"),
        ("team/clickmill", ["docker.io/team/clickmill:latest"], "ok"),
        ("registry.example/clickmill:1", ["registry.example/clickmill:1"], "ok"),
        ("registry.example/clickmill:1", ["registry.example/clickmill:2"], "unknown"),
    ],
)
def test_an_image_is_known_by_the_names_that_nodes_give_it(image: str, names: list[str], state: str) -> None:
    settings = plan_of().settings.model_copy(update={"image": image})
    (finding,) = check_image(settings, [_node(images=[names])])
    assert finding.state == state


def test_where_an_image_is_cannot_be_said_by_who_may_not_look_at_nodes() -> None:
    settings = plan_of().settings.model_copy(update={"image": "clickmill:dev"})
    (finding,) = check_image(settings, None)
    assert (finding.state, finding.found) == ("unknown", "this user may not look at nodes")
    assert "--pull" in finding.remedy


def test_a_remedy_for_several_things_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    remedies = ["kubectl mend all", "kubectl mend all", "", "kubectl mend all"]
    _show([Finding("rights", f"thing {n}", "lacks", "no", each) for n, each in enumerate(remedies)])
    lines = capsys.readouterr().out.splitlines()
    told = [line.rstrip().rpartition("  ")[2] for line in lines if "thing" in line]
    assert told == ["kubectl mend all", "the same", "no", "kubectl mend all"]


def test_a_pull_secret_that_is_not_there_is_a_warning() -> None:
    settings = plan_of("  image_pull_secrets: [registry]\n").settings
    with serving(lambda _: status(404, "NotFound", "not found")) as server:
        (finding,) = check_named(server.cluster(), settings, "team")
    assert finding.state == "warn", "pods start without it"
    assert "kubectl create secret docker-registry registry -n team" in finding.remedy
