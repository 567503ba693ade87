from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickmill.config.backend.secrets import CREDENTIALS, VARIABLES

from .jobs import KINDS, SECRETS, write_job

Reader = Callable[[str], list[Any]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; no variable of a job is set."""
    monkeypatch.chdir(tmp_path)
    secrets = (*VARIABLES.values(), *CREDENTIALS)
    files = (*(f"{name}_FILE" for name in secrets), "AWS_SHARED_CREDENTIALS_FILE")
    for name in (*secrets, *files, "PADDLE_PADDLEREC_ROLE", "PADDLEREC_CLUSTER_TYPE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Secrets in the environment."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return tuple(SECRETS.values())


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, folder: Path, secrets: tuple[str, ...]) -> str:
    """A job of each kind in the current folder."""
    write_job(folder, *KINDS[request.param])
    return str(request.param)


@pytest.fixture(scope="session")
def read_by_kubectl(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """The objects of a text as kubectl reads them; no cluster is asked."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("needs `kubectl` on PATH")
    file = tmp_path_factory.mktemp("kubectl") / "objects.yaml"
    command = [kubectl, "annotate", "--local", "-f", str(file), "read=yes", "-o", "json"]
    environment = {**os.environ, "KUBECONFIG": os.devnull}

    def read(text: str) -> list[Any]:
        file.write_bytes(text.encode())
        done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
        assert done.returncode == 0, done.stderr.decode()
        found, rest = [], done.stdout.decode().lstrip()
        while rest:
            item, end = json.JSONDecoder().raw_decode(rest)
            assert item["metadata"].get("annotations", {}).pop("read") == "yes"
            if not item["metadata"]["annotations"]:
                del item["metadata"]["annotations"]
            found.append(item)
            rest = rest[end:].lstrip()
        return found

    return read
