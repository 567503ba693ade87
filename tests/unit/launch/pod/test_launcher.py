"""`clickmill pod` as a process, against a small API server; the role is a real one where it gets that far."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import IO

import pytest

from clickmill.config import load_config
from clickmill.errors import ConfigError, GaveUpError
from clickmill.launch.pod.launcher import Launcher
from clickmill.launch.pod.launcher import _role as role_of
from clickmill.launch.pod.pod import read_pod
from clickmill.launch.role import Source
from clickmill.ps.admin import Admin

from .api import FakeApi, pod

CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: train, cluster: {wait_for_members_s: 30}}
dataset:
- {name: log, data_path: "{workspace}/train.tsv"}
phase:
- {name: first, model: dnn, dataset_name: log}
"""
DEADLINE_S = 60


class Launched:
    """A pod that was started, in a folder of its own."""

    def __init__(self, folder: Path, environ: dict[str, str], config: str = CONFIG) -> None:
        package = folder / "package"
        package.mkdir()
        (folder / "job").mkdir()
        (package / "config.yaml").write_text(config)
        self.last_words = Path(environ["CLICKMILL_TERMINATION_LOG"])
        self.output = folder / "output/ctr"
        self._stderr = folder / "stderr"
        with self._stderr.open("wb") as stderr:
            self.process = self._start(folder, environ, package, stderr)

    def _start(
        self, folder: Path, environ: dict[str, str], package: Path, stderr: IO[bytes]
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "clickmill", "pod", "-m", "config.yaml",
             "--output", str(self.output), "--package", str(package)],
            cwd=folder / "job",
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )  # fmt: skip

    @property
    def words(self) -> str:
        return self._stderr.read_text()

    def end(self) -> int:
        self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A launcher in this process, for what ends before there is a role."""

    def start(environ: dict[str, str], config: str = CONFIG) -> Launcher:
        for name in ("package", "job"):
            (tmp_path / name).mkdir()
        (tmp_path / "package/config.yaml").write_text(config)
        monkeypatch.chdir(tmp_path / "job")
        return Launcher(Source("config.yaml"), tmp_path / "output", tmp_path / "package", environ=environ)

    return start


def words_of(environ: dict[str, str]) -> str:
    return Path(environ["CLICKMILL_TERMINATION_LOG"]).read_text()


def test_a_trainer_that_comes_when_the_run_is_over_ends_well(api: FakeApi, environ, here):
    api.add_secret("ctr-token")
    api.put_pod(pod("ctr-pserver-0", phase="Succeeded"))
    assert here(environ).run() == 0


def test_a_wrong_configuration_is_told_to_kubernetes(api: FakeApi, environ, here):
    with pytest.raises(ConfigError):
        here(environ, CONFIG.replace("mode: train", "mode: trian")).run()
    assert "there is no runner `trian`" in words_of(environ)
    assert api.asked == []


def test_a_pod_without_rights_says_which(api: FakeApi, environ, here):
    api.forbidden.add("get secrets")
    with pytest.raises(ConfigError):
        here(environ).run()
    words = words_of(environ)
    assert words.startswith("error: ServiceAccount `robot` has no Role that allows `get` and `update`")
    assert "hint: kubectl -n shop create role ctr-token" in words


def test_a_pod_without_an_account_says_so(environ, here, tmp_path: Path):
    with pytest.raises(ConfigError, match="this pod has no account to ask the API server with"):
        here({**environ, "CLICKMILL_SERVICE_ACCOUNT": str(tmp_path)}).run()


def test_a_server_has_the_number_of_its_pod_though_there_were_fewer_at_the_start(environ, tmp_path: Path):
    told = {**environ, "CLICKMILL_ROLE": "PSERVER", "POD_NAME": "ctr-pserver-5", "CLICKMILL_PSERVERS": "2"}
    (tmp_path / "config.yaml").write_text(CONFIG)
    runner = load_config(str(tmp_path / "config.yaml")).runners()[0]
    assert role_of(read_pod(told), told, runner).index == 5


def test_a_pod_that_has_been_started_too_often_gives_up(environ, here):
    told = {**environ, "CLICKMILL_RESTARTS": "6", "CLICKMILL_MAX_RESTARTS": "5"}
    with pytest.raises(GaveUpError):
        here(told).run()
    assert words_of(environ).startswith("error: pods of the job have been started again 6 times")


def test_the_last_try_is_final(api: FakeApi, environ, here):
    """Nobody answers, which is worth another try as a rule."""
    told = {"CLICKMILL_RESTARTS": "5", "CLICKMILL_MAX_RESTARTS": "5", "KUBERNETES_SERVICE_PORT": "1"}
    config = CONFIG.replace("wait_for_members_s: 30", "wait_for_members_s: 0.1")
    with pytest.raises(GaveUpError, match="this was the last of 5 restarts"):
        here({**environ, **told}, config).run()


def test_a_manifest_for_another_mode_is_refused(environ, here):
    config = CONFIG.replace("class: train,", "class: train, fleet_mode: collective,")
    with pytest.raises(ConfigError, match="is `collective`, but this pod is a trainer"):
        here(environ, config).run()


def test_scores_are_not_for_a_job_of_pods(environ, here):
    config = CONFIG.replace("class: train,", "class: infer, init_model_path: x,")
    with pytest.raises(ConfigError, match="a job of pods trains"):
        here(environ, config).run()


def test_a_pod_that_waits_ends_when_it_is_asked_to(api: FakeApi, environ, tmp_path: Path):
    api.add_secret("ctr-token")
    launched = Launched(tmp_path, environ)
    api.wait_until_asked("watch pods")
    launched.process.terminate()
    assert launched.end() == 143
    assert "waits for pserver 0, which has no pod yet" in launched.words


def free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture
def server(api: FakeApi, environ, tmp_path: Path):
    """A parameter server that serves, as a pod would."""
    api.add_secret("ctr-token")
    port, metrics = free_ports(2)
    told = {"CLICKMILL_ROLE": "PSERVER", "POD_NAME": "ctr-pserver-0", "POD_IP": "127.0.0.1"}
    ports = {"CLICKMILL_PORT": str(port), "CLICKMILL_METRICS_PORT": str(metrics), "CLICKMILL_PSERVERS": "1"}
    launched = Launched(tmp_path, {**environ, **told, **ports})
    assert launched.process.stdout is not None
    line = launched.process.stdout.readline()
    assert line, launched.words
    launched.told = json.loads(line)
    yield launched
    launched.process.kill()
    launched.process.communicate()


def test_a_server_listens_everywhere_and_is_known_by_its_address(api: FakeApi, server, environ):
    assert server.told["address"].startswith("127.0.0.1:")
    token = base64.b64decode(api.secrets["ctr-token"]["data"]["token"]).decode()
    assert Admin(server.told["address"], token=token).status()["num_servers"] == 1
    port = server.told["metrics"].rpartition(":")[2]
    assert server.told["metrics"] == f"0.0.0.0:{port}"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=DEADLINE_S) as page:
        assert page.status == 200
    assert (server.output / "snapshots").is_dir()


def test_a_server_ends_with_the_signal_and_says_what_became_of_its_parameters(server):
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 143
    assert "pod.snapshot missing=" in server.words, "nothing was trained that could be kept"
    assert "role.ended role=pserver 0 exit_code=143 asked_by=SIGTERM" in server.words


def test_a_pod_that_nobody_deletes_is_to_be_started_again(api: FakeApi, server):
    """Its node evicts it, or shuts down."""
    api.put_pod(pod("ctr-pserver-0"))
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 1
    assert "pod.ends exit_code=1" in server.words


def test_a_pod_that_somebody_deletes_ends_with_the_signal(api: FakeApi, server):
    deleted = pod("ctr-pserver-0")
    deleted["metadata"]["deletionTimestamp"] = "2026-11-18T01:00:00Z"
    api.put_pod(deleted)
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 143


def test_a_server_that_is_deleted_while_others_train_does_not_end_well(api: FakeApi, server):
    """Its buckets have moved: as one that ended well it would tell that training is done."""
    deleted = pod("ctr-pserver-0")
    deleted["metadata"]["deletionTimestamp"] = "2026-11-18T01:00:00Z"
    api.put_pod(deleted)
    api.put_pod(pod("ctr-trainer-0", "trainer"))
    token = base64.b64decode(api.secrets["ctr-token"]["data"]["token"]).decode()
    num_lists = api.asked.count("list pods")
    Admin(server.told["address"], token=token).stop(lambda _: None)
    with api.changed:  # it lingers
        assert api.changed.wait_for(lambda: api.asked.count("list pods") > num_lists, timeout=DEADLINE_S)
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 143
    assert "role.ended role=pserver 0 exit_code=0" in server.words


def test_a_server_that_was_made_again_when_the_run_was_over_ends_well(api: FakeApi, server):
    """It waits for a trainer that brings the job, and all of them are done."""
    api.put_pod(pod("ctr-pserver-0"))
    ended = {"terminated": {"exitCode": 0, "finishedAt": "2026-11-18T01:00:01Z"}}
    for index in range(2):
        api.put_pod(pod(f"ctr-trainer-{index}", "trainer", phase="Succeeded", state=ended))
    assert server.end() == 0
    assert "all trainers have ended, and one of them well: the run is over" in server.words
    assert "pod.snapshot" not in server.words


def test_a_role_that_is_killed_is_told_of(server):
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    assert len(children) == 1
    os.kill(int(children[0]), signal.SIGKILL)
    assert server.end() == 137
    assert server.last_words.read_text() == "error: pserver 0 was killed by SIGKILL"


def test_lines_of_a_role_have_a_date(server):
    end = time.monotonic() + DEADLINE_S
    while " - INFO - coordinator." not in server.words:
        assert time.monotonic() < end, server.words
        time.sleep(0.02)
