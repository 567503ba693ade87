from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote.fixtures import *  # noqa: F403
from tests.remote.hdfs_server import USER, hdfs_server
from tests.unit.train.conftest import log_folder, workplace

__all__ = ["log_folder", "workplace"]

_numbers = itertools.count()


@pytest.fixture(scope="session", name="name_node")
def _name_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a small HDFS."""
    with hdfs_server(tmp_path_factory.mktemp("hdfs")) as place:
        yield place


@pytest.fixture(name="home")
def _home(name_node: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a folder that `alice`, who this test is, may write to."""
    monkeypatch.setenv("CLICKMILL_FS_UGI", USER)
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    return f"hdfs://{name_node}/user/alice/test-{next(_numbers)}"
