"""What tests on a real cluster share. `make test-k8s` finds one; without KUBECONFIG they are skipped."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from clickmill.kube import connect, kinds
from clickmill.kube.client import Cluster, Object

from .kit import Kit

DEADLINE_S = 120.0
_POLL_S = 0.3

Kubectl = Callable[..., str]
WaitFor = Callable[..., None]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster of KUBECONFIG. One that is named and does not answer is a failure, not a reason to skip."""
    if not os.environ.get("KUBECONFIG"):
        pytest.skip("no cluster: set KUBECONFIG, or run `make test-k8s`")
    with connect() as found:
        found.discover("/version")
        yield found


@pytest.fixture(scope="session")
def volcano(cluster: Cluster) -> None:
    """Skips where the cluster has no Volcano."""
    from clickmill.submit.kubernetes.check.volcano import has_kind

    if not has_kind(cluster, kinds.VOLCANO_JOB):
        pytest.skip("the cluster has no Volcano")


@pytest.fixture(scope="session")
def image() -> str:
    """The image to test; it must be where the nodes find it."""
    name = os.environ.get("CLICKMILL_IMAGE", "")
    if not name:
        pytest.skip("no image: set CLICKMILL_IMAGE, or run `make test-k8s`")
    return name


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own; afterwards its pods are gone, so that the next has room, and it goes."""
    name = f"clickmill-test-{secrets.token_hex(4)}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    for kind in (kinds.VOLCANO_JOB, kinds.JOB):
        for item in _all(cluster, kind, name):
            cluster.delete(kind, item["metadata"]["name"], namespace=name)
    for pod in _all(cluster, kinds.POD, name):
        cluster.delete(kinds.POD, pod["metadata"]["name"], namespace=name, grace_period_s=0)
    cluster.delete(kinds.NAMESPACE, name)
    poll(lambda: not _all(cluster, kinds.POD, name), f"the pods of namespace {name} to be gone")


def _all(cluster: Cluster, kind: kinds.Kind, namespace: str) -> list[Object]:
    from clickmill.errors import NotFoundError

    try:
        return cluster.list(kind, namespace=namespace)
    except NotFoundError:
        return []


@pytest.fixture
def kubectl(cluster: Cluster, namespace: str) -> Kubectl:
    """`kubectl` in the namespace of the test; its stdout."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")

    def run(*arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["kubectl", "-n", namespace, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def poll(claim: Callable[[], object], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Until the claim holds. Fails with `what` was waited for, and what the claim last was."""
    end = time.monotonic() + deadline_s
    while True:
        found = claim()
        if found:
            return
        assert time.monotonic() < end, f"waited {deadline_s:.0f} s for {what}; it is {found!r}"
        time.sleep(_POLL_S)


@pytest.fixture
def kubeconfig() -> Path:
    """The file that KUBECONFIG names."""
    return Path(os.environ["KUBECONFIG"])


@pytest.fixture
def newcomer(cluster: Cluster, namespace: str, kubectl: Kubectl, tmp_path: Path) -> Path:
    """A kubeconfig of somebody whom the cluster knows, and who may do nothing yet."""
    kubectl("create", "serviceaccount", "newcomer")
    token = kubectl("create", "token", "newcomer", "--duration=1h").strip()
    content = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    content["users"] = [{"name": "newcomer", "user": {"token": token}}]
    for context in content["contexts"]:
        context["context"]["user"] = "newcomer"
    path = tmp_path / "newcomer.conf"
    path.write_text(yaml.safe_dump(content))
    return path


def _found_kit() -> Kit | None:
    place = os.environ.get("DEVCLUSTER_KIT", "")
    return Kit(Path(place).resolve()) if place else None


@pytest.fixture
def kit() -> Kit:
    """Only where the tests made the cluster themselves: nobody else's nodes are killed."""
    found = _found_kit()
    if found is None:
        pytest.skip("kills nodes and programs of the cluster: only with a dev cluster of `make test-k8s`")
    return found


@pytest.fixture(autouse=True)
def _volumes() -> None:
    """Where the tests made the cluster themselves, claims get volumes, whatever a test before has done."""
    if found := _found_kit():
        found.keep_volumes_coming()
