"""A small HDFS: Hadoop's own name node and data node, in a process of theirs."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

USER = "alice,the-password"
"""Who has a home there, `/user/alice`."""


@contextlib.contextmanager
def hdfs_server(folder: Path, host: str = "127.0.0.1") -> Iterator[str]:
    """`host:port` of its name node, on an address of this machine; skips where it cannot be started."""
    jars = os.environ.get("CLICKMILL_HDFS_JARS", "")
    if not jars or not list(Path(jars).glob("hadoop-client-minicluster-*.jar")):
        pytest.skip("CLICKMILL_HDFS_JARS names no folder with Hadoop's jars; `make .hdfs` makes one")
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no `java`; a small HDFS needs a JDK of version 11 or newer")
    source = Path(__file__).with_name("SmallHdfs.java")
    command = [java, "-Xmx512m", "-cp", f"{Path(jars).absolute()}/*", str(source), str(folder / "data"), host]
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
            yield f"{host}:{port}"
        finally:
            process.kill()
