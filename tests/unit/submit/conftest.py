from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.config.backend.secrets import CREDENTIALS, VARIABLES

from .jobs import KINDS, SECRETS, write_job


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
