from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clickmill.launch.pod import access

from .api import FakeApi, has_openssl, make_account, serving

ENVIRON = {
    "CLICKMILL_ROLE": "TRAINER",
    "CLICKMILL_JOB": "ctr",
    "CLICKMILL_PSERVERS": "2",
    "CLICKMILL_TRAINERS": "2",
    "CLICKMILL_SERVICE": "ctr-pods",
    "POD_NAME": "ctr-trainer-1",
    "POD_IP": "10.0.0.9",
    "NAMESPACE": "shop",
}


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not has_openssl():
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("account")
    make_account(folder)
    return folder


@pytest.fixture
def api(account: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    monkeypatch.setattr(access, "_BETWEEN_S", 0.01)
    monkeypatch.setattr(access, "_SETTLING_S", 0.1)
    with serving(account) as found:
        yield found


@pytest.fixture
def environ(api: FakeApi, tmp_path: Path) -> dict[str, str]:
    return {**ENVIRON, **api.environ(), "CLICKMILL_TERMINATION_LOG": str(tmp_path / "termination-log")}
