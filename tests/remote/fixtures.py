"""Fixtures of all tests that need a store; imported by the conftest.py of each folder that has some."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote.file_server import FileServer, file_server
from tests.remote.s3_server import S3Server, s3_server

__all__ = ["_bucket", "_own_cache", "_s3", "_web", "_web_server"]

_numbers = itertools.count()
_FOREIGN = (
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "CLICKMILL_CACHE_BYTES",
    "CLICKMILL_HTTP_TOKEN",
    "CLICKMILL_FS_UGI",
)


@pytest.fixture(scope="session", name="s3")
def _s3() -> Iterator[S3Server]:
    """One for all tests: it takes seconds to start."""
    with s3_server() as server:
        yield server


@pytest.fixture(name="own_cache")
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and nothing of this machine's accounts; little patience."""
    for name in _FOREIGN:
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "own-cache"
    monkeypatch.setenv("CLICKMILL_CACHE", str(folder))
    monkeypatch.setenv("CLICKMILL_REMOTE_PATIENCE_S", "20")
    return folder


@pytest.fixture(name="bucket")
def _bucket(s3: S3Server, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """`s3://…` of a new bucket, with access to it."""
    for name, value in s3.variables().items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3.new_bucket()}"


@pytest.fixture(scope="session", name="web_server")
def _web_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    with file_server(tmp_path_factory.mktemp("web")) as server:
        yield server


@pytest.fixture(name="web")
def _web(web_server: FileServer, own_cache: Path) -> FileServer:
    """A folder of a file server, for one test."""
    return web_server.below(f"test-{next(_numbers)}")
