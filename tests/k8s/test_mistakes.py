"""What people get wrong: `status` and `logs` say what it is, and no exit code is 0."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clickmill.kube import kinds
from clickmill.kube.client import Cluster

from .conftest import DEADLINE_S, poll
from .kit import Kit
from .submitted import Job

SUBMIT = ("submit", "-m", "config.yaml", "-b", "backend.yaml")

pytestmark = [pytest.mark.usefixtures("volcano"), pytest.mark.timeout(900)]


@pytest.fixture(params=["volcano", "default"])
def job(request: pytest.FixtureRequest, tmp_path: Path, image: str, namespace: str) -> Job:
    found = Job(tmp_path, image, namespace, request.param)
    found.make_log(200)
    return found


def failing(job: Job, *words: str) -> tuple[int, str]:
    """Exit code and everything that a command says."""
    done = subprocess.run(
        [sys.executable, "-m", "clickmill", *words],
        cwd=job.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * DEADLINE_S,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_wrong_image(job: Job) -> None:
    job.write()
    path = job.folder / "backend.yaml"
    path.write_text(path.read_text().replace(os.environ["CLICKMILL_IMAGE"], "clickmill-absent:test"))
    code, words = failing(job, *SUBMIT, "--wait")
    assert code == 1
    assert "image `clickmill-absent:test` cannot be had" in words
    for verb in ("status", "logs"):
        code, words = failing(job, "job", verb, "ctr", "-n", job.namespace)
        assert code == 1
        assert "image `clickmill-absent:test` cannot be had" in words
        assert "kubernetes.image" in words


def test_data_that_is_not_there(job: Job) -> None:
    job.write(data_path="nowhere/log.tsv")
    assert_told(job, 3, "nowhere/log.tsv")


def test_a_configuration_that_pods_refuse(job: Job, cluster: Cluster) -> None:
    """One that passes here is wrong there alone where it was changed on the way, by hand for instance."""
    job.write()
    job.run(*SUBMIT, "--dry-run", "-o", "made")
    (made,) = (job.folder / "made").glob("*.yaml")
    text = made.read_text()
    assert "batch_size: 50" in text
    made.write_text(text.replace("batch_size: 50", "batch_sise: 50"))
    subprocess.run(["kubectl", "apply", "-f", str(made)], check=True, capture_output=True)
    job.run("job", "wait", "ctr", "-n", job.namespace, code=2)
    for verb in ("status", "logs"):
        code, words = failing(job, "job", verb, "ctr", "-n", job.namespace)
        assert "batch_sise" in words
        assert code == (2 if verb == "status" else 0)


def test_a_configuration_that_is_wrong_here_is_not_submitted(job: Job, cluster: Cluster) -> None:
    job.write()
    path = job.folder / "config.yaml"
    path.write_text(path.read_text().replace("batch_size", "batch_sise"))
    code, words = failing(job, *SUBMIT)
    assert code == 2
    assert "batch_sise" in words
    assert cluster.list(kinds.VOLCANO_JOB, namespace=job.namespace) == []


def test_somebody_without_rights(job: Job, newcomer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(newcomer))
    job.write()
    code, words = failing(job, *SUBMIT)
    assert code == 1
    assert "lacks the right `get " in words
    assert "clickmill cluster check" in words


def test_pods_without_rights(job: Job, cluster: Cluster) -> None:
    """The account is there and its Role is gone, as where an administrator has tidied up."""
    job.write()
    job.run(*SUBMIT, "--dry-run", "-o", "made")
    (made,) = (job.folder / "made").glob("*.yaml")
    kept = [part for part in made.read_text().split("---\n") if "kind: RoleBinding" not in part]
    made.write_text("---\n".join(kept))
    subprocess.run(["kubectl", "apply", "-f", str(made)], check=True, capture_output=True)
    job.run("job", "wait", "ctr", "-n", job.namespace, code=2)
    code, words = failing(job, "job", "status", "ctr", "-n", job.namespace)
    assert code == 2
    assert "kubectl" in words
    assert "create rolebinding" in words


def assert_told(job: Job, code: int, words: str) -> None:
    found, said = failing(job, *SUBMIT, "--wait")
    assert (found, words in said) == (code, True), said
    found, said = failing(job, "job", "status", "ctr", "-n", job.namespace)
    assert (found, words in said) == (code, True), said
    assert words in job.run("job", "logs", "ctr", "-n", job.namespace)


FOLDER = "/var/tmp/clickmill-small-disk"


@pytest.fixture
def small_disk(kit: Kit, cluster: Cluster) -> Iterator[str]:
    """A node with a disk of a few megabytes; what backend.yaml says to write to it."""
    node = cluster.list(kinds.NODE)[0]["metadata"]["name"]
    kit.on_node(node, f"mkdir -p {FOLDER} && mount -t tmpfs -o size=3m,uid=1000,gid=1000 small {FOLDER}")
    cluster.patch(kinds.NODE, node, {"metadata": {"labels": {"disk": "small"}}})
    yield f"  output: {{host_path: {FOLDER}}}\n  model_node: {{disk: small}}\n"
    cluster.patch(kinds.NODE, node, {"metadata": {"labels": {"disk": None}}})
    kit.on_node(node, f"umount -l {FOLDER}; rmdir {FOLDER}")


def test_a_full_disk(job: Job, small_disk: str) -> None:
    job.make_log(2000)
    job.submit(epochs=2000, more=small_disk)
    status = job.await_status(
        lambda status: (
            status["phase"] == "Failed"
            or any("No space left" in reason["words"] for reason in status["reasons"])
        ),
        "it to be told",
    )
    assert any("No space left" in reason["words"] for reason in status["reasons"])
    code, words = failing(job, "job", "wait", "ctr", "-n", job.namespace)
    assert code != 0
    assert "No space left" in words


def test_a_volume_that_nobody_makes(job: Job, kit: Kit) -> None:
    kit.stop_volumes()
    job.submit()
    status = ("job", "status", "ctr", "-n", job.namespace)
    poll(lambda: "has made no volume for it yet" in failing(job, *status)[1], "it to be told")
    assert failing(job, *status)[0] == 1
    kit.keep_volumes_coming()

    def is_under_way() -> bool:
        """Volcano may have to be made to look again, as the status says then."""
        _, words = failing(job, *status, "--json")
        for reason in json.loads(words)["reasons"]:
            if command := re.search(r"`(kubectl annotate [^`]*)`", reason["remedy"] or ""):
                subprocess.run(command[1].split(), check=True, capture_output=True)
        return json.loads(words)["phase"] in {"Running", "Completed"}

    poll(is_under_way, "the job to start")
    job.job("wait", "--timeout", "300")
