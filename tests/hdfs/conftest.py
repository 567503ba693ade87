from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote.fixtures import *  # noqa: F403
from tests.unit.train.conftest import log_folder, workplace

__all__ = ["log_folder", "workplace"]

_numbers = itertools.count()


@pytest.fixture(scope="session", name="name_node")
def _name_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a small HDFS."""
    jars = os.environ.get("CLICKMILL_HDFS_JARS", "")
    if not jars or not list(Path(jars).glob("hadoop-client-minicluster-*.jar")):
        pytest.skip("CLICKMILL_HDFS_JARS names no folder with Hadoop's jars; `make test-hdfs` downloads them")
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no `java`; a small HDFS needs a JDK of version 11 or newer")
    folder = tmp_path_factory.mktemp("hdfs")
    source = Path(__file__).with_name("MiniHdfs.java")
    command = [java, "-Xmx512m", "-cp", f"{Path(jars).absolute()}/*", str(source), str(folder / "data")]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        port = next((line.strip() for line in process.stdout if line.strip().isdecimal()), None)
        assert port is not None, (folder / "log").read_text()[-4000:]
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.fixture(name="home")
def _home(name_node: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a folder that `alice`, who this test is, may write to."""
    monkeypatch.setenv("CLICKMILL_FS_UGI", "alice,the-password")
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    return f"hdfs://{name_node}/user/alice/test-{next(_numbers)}"
