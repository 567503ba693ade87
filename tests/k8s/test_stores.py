"""Samples come from S3, HDFS or HTTP and checkpoints go there, from pods, as whoever submits may."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.remote.contract import put
from tests.remote.file_server import file_server
from tests.remote.hdfs_server import hdfs_server
from tests.remote.s3_server import s3_server

from .conftest import Kubectl
from .kit import Kit
from .submitted import Job

ROWS, PASSES = 2000, 2
SECRET = "open-sesame-1001"


@pytest.fixture
def host(kit: Kit, kubeconfig: Path) -> str:
    """This machine as pods reach it: where the API server of a dev cluster listens."""
    content = yaml.safe_load(kubeconfig.read_text())
    address = urlsplit(content["clusters"][0]["cluster"]["server"]).hostname
    assert address
    return address


Store = Callable[[str, Path], contextlib.AbstractContextManager[tuple[str, dict[str, str]]]]
"""Given the address and a folder of its own: a URL, and the variables of who may write there."""


@contextlib.contextmanager
def s3(host: str, _: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with s3_server(host) as server:
        bucket = server.new_bucket()
        yield f"s3://{bucket}/clicks", {**server.variables(), "AWS_SECRET_ACCESS_KEY": SECRET}


@contextlib.contextmanager
def http(host: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with file_server(folder, token=SECRET, host=host) as server:
        yield f"{server.url}/clicks", {"CLICKMILL_HTTP_TOKEN": SECRET}


@contextlib.contextmanager
def hdfs(host: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with hdfs_server(folder, host) as name_node:
        yield f"hdfs://{name_node}/user/alice", {"CLICKMILL_FS_UGI": f"alice,{SECRET}"}


@pytest.mark.parametrize("store", [s3, http, hdfs])
def test_a_job_reads_from_a_store_and_leaves_its_checkpoints_there(
    store: Store,
    host: str,
    image: str,
    namespace: str,
    volcano: None,
    kubectl: Kubectl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, own = tmp_path / "store", tmp_path / "own"
    place.mkdir()
    own.mkdir()
    job = Job(own, image, namespace)
    job.run("data", "synth", str(tmp_path / "log.tsv"), "--rows", str(ROWS))
    with store(host, place) as (url, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        put(f"{url}/log.tsv", (tmp_path / "log.tsv").read_bytes(), tmp_path)
        job.write(epochs=PASSES, more=f'config: {{output_path: "{url}/models"}}\n')
        data = ("--set", f"dataset.0.data_path={url}/log.tsv")
        job.run("submit", "-m", "config.yaml", "-b", "backend.yaml", "--wait", *data)
        assert job.job("status")["samples"] == ROWS * PASSES

        newest = f"{url}/models/checkpoints/{PASSES - 1}"
        told = json.loads(job.run("evaluate", "-m", "config.yaml", "--checkpoint", newest, *data, "--json"))
        assert told["samples"] == ROWS
    shown = kubectl("get", "vcjob,pod,configmap,service", "-o", "yaml")
    assert SECRET not in shown + job.run("job", "logs", "ctr", "-n", namespace)
