"""Values of `kubernetes` that an API server or a node refuses are refused before, each with its line."""

from __future__ import annotations

import pytest

from clickmill.config.backend import parse_backend
from clickmill.errors import ConfigError

DIGEST = "sha256:" + "0a" * 32
VOLUME = "{name: data, claim: logs, mount: train_data}"


def with_value(key: str, value: str) -> str:
    """A backend.yaml with a value in its third line or below it."""
    lines = ["backend: Kubernetes", "kubernetes:", "  image: registry.example/clickmill:1"]
    if key.startswith("submit."):
        lines += ["submit:", f"  {key.removeprefix('submit.')}: {value}"]
    else:
        lines.append(f"  {key}: {value}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("key", "value", "place", "words"),
    [
        ("namespace", "Bad_NS", "namespace", "lower-case letters and digits, with `-` between them"),
        ("namespace", "a" * 64, "namespace", "at most 63"),
        ("namespace", "a.b", "namespace", "not `a.b`"),
        ("namespace", "team-", "namespace", "between them"),
        ("image_pull_secrets", "[My_Secret]", "image_pull_secrets.0", "lower-case"),
        ("image_pull_secrets", "My_Secret", "image_pull_secrets", "lower-case"),
        ("queue", "a b", "queue", "lower-case"),
        ("priority_class", "High", "priority_class", "not `High`"),
        ("env", "{1A: x}", "env.1A", "no digit at its start"),
        ("env", '{"A B": x}', "env.A B", "is no name of a variable"),
        ("env", '{"": x}', "env.", "is no name of a variable"),
        ("env", "{..A: x}", "env...A", "is no name of a variable"),
        ("env", '{A: "b\\0c"}', "env.A", "null"),
        ("node_selector", "{a b: c}", "node_selector.a b", "key of a label"),
        ("node_selector", '{"": c}', "node_selector.", "key of a label"),
        ("node_selector", "{/a: c}", "node_selector./a", "key of a label"),
        ("node_selector", "{a/b/c: d}", "node_selector.a/b/c", "key of a label"),
        ("node_selector", f"{{{'a' * 64}: d}}", f"node_selector.{'a' * 64}", "at most 63"),
        ("node_selector", "{disk: a/b}", "node_selector.disk", "letters and digits"),
        ("model_node", "{disk: -a}", "model_node.disk", "not `-a`"),
        ("tolerations", "[{key: a b, value: c}]", "tolerations.0.key", "key of a label"),
        ("tolerations", "[{key: a, value: b c}]", "tolerations.0.value", "letters and digits"),
        ("tolerations", "[{value: a}]", "tolerations.0", "`operator: Exists`"),
        ("tolerations", "[{key: a, operator: Exists, value: b}]", "tolerations.0", "leave one of them out"),
        ("tolerations", "[{key: a, value: b, toleration_seconds: 3}]", "tolerations.0", "effect: NoExecute"),
        ("output", "{claim: My_Claim}", "output.claim", "lower-case"),
        ("output", "{storage_class: Fast}", "output.storage_class", "lower-case"),
        ("output", "{host_path: work}", "output.host_path", "must be an absolute path"),
        ("output", "{host_path: /home/../etc}", "output.host_path", "without `..`"),
        ("output", '{size: ""}', "output.size", "more than nothing"),
        ("output", "{size: 0Gi}", "output.size", "more than nothing"),
        ("volumes", "[{name: My_Data, claim: c, mount: d}]", "volumes.0.name", "lower-case"),
        ("volumes", f"[{{name: {'a' * 51}, claim: c, mount: d}}]", "volumes.0.name", "at most 50"),
        ("volumes", '[{name: "", claim: c, mount: d}]', "volumes.0.name", "lower-case"),
        ("volumes", "[{name: d, claim: A_B, mount: d}]", "volumes.0.claim", "lower-case"),
        ("volumes", "[{name: d, host_path: here, mount: d}]", "volumes.0.host_path", "absolute"),
        ("volumes", "[{name: d, nfs: {server: '', path: /a}, mount: d}]", "volumes.0.nfs.server", "empty"),
        ("volumes", "[{name: d, nfs: {server: a, path: b}, mount: d}]", "volumes.0.nfs.path", "absolute"),
        ("volumes", "[{name: d, claim: c, mount: ../etc}]", "volumes.0.mount", "without `..`"),
        ("volumes", "[{name: d, claim: c, mount: 'a:b'}]", "volumes.0.mount", "without `:`"),
        ("max_restarts", "9223372036854775807", "max_restarts", "must be 2147483547 or less"),
        ("max_restarts", "-1", "max_restarts", "0 or more"),
        ("port", "65535", "port", "the port after it"),
        ("port", "0", "port", "1 or more"),
        ("submit.k8s_trainers", "9223372036854775807", "submit.k8s_trainers", "100000 or less"),
        ("submit.k8s_ps_num", "2147483647", "submit.k8s_ps_num", "100000 or less"),
        ("submit.nodes", "99999999999", "submit.nodes", "100000 or less"),
        ("submit.k8s_cpu_cores", "100001", "submit.k8s_cpu_cores", "100000 or less"),
        ("submit.k8s_ps_cores", "9223372036854775807", "submit.k8s_ps_cores", "100000 or less"),
        ("submit.k8s_gpu_card", "100001", "submit.k8s_gpu_card", "100000 or less"),
    ],
)  # fmt: skip
def test_value_that_kubernetes_refuses_is_an_error_with_its_line(
    key: str, value: str, place: str, words: str
) -> None:
    with pytest.raises(ConfigError) as error:
        parse_backend(with_value(key, value))
    (problem,) = error.value.problems
    assert problem.key == (place if place.startswith("submit.") else f"kubernetes.{place}")
    assert words in problem.message
    assert (problem.file, problem.line) == ("backend.yaml", 5 if key.startswith("submit.") else 4)
    assert problem.column


@pytest.mark.parametrize(
    "mount", ["/job", ".", "", "./", "/job/", "/output", "//tmp", "/cache/.", "/package/a", "/"]
)
def test_mount_where_every_pod_has_something_is_refused(mount: str) -> None:
    text = with_value("volumes", f"[{{name: d, claim: c, mount: '{mount}'}}]")
    with pytest.raises(ConfigError, match="which every pod has already; name another") as error:
        parse_backend(text)
    assert error.value.problems[0].key == "kubernetes.volumes.0.mount"


@pytest.mark.parametrize(
    "image",
    [
        "bad image",
        "Clickmill",
        "a:b:c:",
        "registry/",
        "/a",
        "a@sha256:12",
        "http://registry/a",
        " a",
        "a\n",
        "a//b",
    ],
)
def test_what_is_no_image_is_refused(image: str) -> None:
    with pytest.raises(ConfigError, match="must be an image, such as") as error:
        parse_backend("backend: Local\n", overrides=[f"kubernetes.image={image!r}"])
    assert error.value.problems[0].key == "kubernetes.image"


@pytest.mark.parametrize(
    "image",
    [
        "clickmill", "clickmill:0.1.0", "team/click_mill.x--y", "localhost:5000/a/b:latest", f"a/b@{DIGEST}",
        f"Registry.example/a:1@{DIGEST}", "[::1]:5000/a", "10.0.0.1/a", "registry.example:443/a/b/c:V1_-.x",
    ],
)  # fmt: skip
def test_images_of_all_kinds_are_taken(image: str) -> None:
    assert (
        parse_backend("backend: Local\n", overrides=[f"kubernetes.image={image!r}"]).kubernetes.image == image
    )


def test_what_kubernetes_takes_is_taken() -> None:
    settings = parse_backend(
        f"""\
backend: Kubernetes
submit: {{k8s_trainers: 100000, k8s_ps_num: 100000}}
kubernetes:
  namespace: team-1
  image_pull_secrets: registry.example
  queue: root.research
  max_restarts: 2147483547
  port: 65534
  node_selector: {{example.com/disk: "", kubernetes.io/arch: amd64, a_B.c: D-e}}
  tolerations:
  - {{operator: Exists}}
  - {{key: example.com/a, value: b, effect: NoExecute, toleration_seconds: 0}}
  - {{key: a, operator: Exists, effect: NoSchedule}}
  output: {{host_path: /home/work..}}
  volumes:
  - {VOLUME}
  - {{name: more, nfs: {{server: files, path: /}}, mount: //more/./x/}}
  - {{name: tmp, host_path: /data, mount: /tmp/data}}
  env: {{a.b-c_D: "", _1: "x\\ny", A: 1}}
"""
    ).kubernetes
    assert [volume.place for volume in settings.volumes] == ["/job/train_data", "/more/x", "/tmp/data"]
    assert settings.image_pull_secrets == ("registry.example",)
