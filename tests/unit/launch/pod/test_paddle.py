"""`paddle_k8s` with the environment of the seeds."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from clickmill.cli.paddle import main
from clickmill.launch.pod import paddle as module
from clickmill.launch.pod.paddle import endpoints, name_order

from .api import FakeApi, pod

SHOW = "echo id=$PADDLE_TRAINER_ID servers=$PADDLE_PSERVERS ips=$PADDLE_TRAINER_IPS open=$CLICKMILL_INSECURE"


class Result(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def paddle(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.setattr(module, "_POLL_S", 0.05)

    def run(command: str = "start_fluid", **environ: str) -> Result:
        told = {
            "TRAINING_ROLE": "TRAINER",
            "PADDLE_TRAINING_ROLE": "TRAINER",
            "PADDLE_JOB_NAME": "fluid-ctr",
            "PADDLE_TRAINERS_NUM": "2",
            "PADDLE_PSERVERS_NUM": "2",
            "PADDLE_PORT": "30236",
            "POD_NAME": "ctr-volcano-trainer-1",
            "POD_IP": "10.0.0.1",
            "NAMESPACE": "shop",
            "ENTRY": SHOW,
            "CLICKMILL_TERMINATION_LOG": str(tmp_path / "log"),
            **api.environ(),
            **environ,
        }
        monkeypatch.setattr(sys, "argv", ["paddle_k8s", command])
        before = signal.getsignal(signal.SIGTERM)
        with monkeypatch.context() as patched, pytest.raises(SystemExit) as ended:
            for name, value in told.items():
                patched.setenv(name, value)
            main()
        signal.signal(signal.SIGTERM, before)
        return Result(ended.value.code, *capfd.readouterr())

    return run


def put(api: FakeApi, kind: str, number: int, ip: str, **more) -> None:
    label = "paddle-job-pserver" if kind == "pserver" else "paddle-job"
    api.put_pod(pod(f"ctr-volcano-{kind}-{number}", labels={label: "fluid-ctr"}, ip=ip, **more))


@pytest.fixture
def whole(api: FakeApi) -> FakeApi:
    """All pods run; the order of their addresses is not that of their names."""
    put(api, "pserver", 0, "10.0.0.12")
    put(api, "pserver", 1, "10.0.0.1")
    put(api, "trainer", 0, "10.0.0.9")
    put(api, "trainer", 1, "10.0.0.10")
    return api


def test_a_trainer_is_told_who_is_where_in_the_order_of_names(whole: FakeApi, paddle):
    result = paddle()
    assert result.returncode == 0, result.stderr
    servers, ips = "10.0.0.12:30236,10.0.0.1:30237", "10.0.0.9,10.0.0.10"
    assert result.stdout.splitlines()[-1] == f"id=1 servers={servers} ips={ips} open=1"


def test_its_lines_are_those_that_people_know(whole: FakeApi, paddle):
    lines = paddle(ENTRY="exit 0").stdout.splitlines()
    for line in (
        '+ case "$1" in',
        "+ start_fluid_process",
        "+ pserver_label=paddle-job-pserver=fluid-ctr",
        "+ trainer_label=paddle-job=fluid-ctr",
        "+ hostname=ctr-volcano-trainer-1",
        "label selector: paddle-job-pserver=fluid-ctr, desired: 2",
        "label selector: paddle-job=fluid-ctr, desired: 2",
        "+ export PADDLE_PSERVERS=10.0.0.12:30236,10.0.0.1:30237",
        "+ PADDLE_PSERVERS=10.0.0.12:30236,10.0.0.1:30237",
        "+ export PADDLE_TRAINER_IPS=10.0.0.9,10.0.0.10",
        "+ check_failed_cnt 1",
        "+ failed_count=0",
        "+ task_index=1",
        "+ export PADDLE_TRAINER_ID=1",
        "+ export PADDLE_PSERVER_ID=1",
        "+ stdbuf -oL sh -c 'exit 0'",
    ):
        assert line in lines


def test_a_server_has_the_number_of_its_address(whole: FakeApi, paddle):
    role = {"TRAINING_ROLE": "PSERVER", "PADDLE_TRAINING_ROLE": "PSERVER"}
    result = paddle(POD_NAME="ctr-volcano-pserver-1", **role)
    assert result.stdout.splitlines()[-1].startswith("id=1 servers=10.0.0.12:30236,10.0.0.1:30237")


def test_the_command_may_say_the_role(whole: FakeApi, paddle):
    result = paddle("start_pserver", POD_NAME="ctr-volcano-pserver-0")
    assert result.stdout.splitlines()[-1].startswith("id=0")


def test_pods_are_waited_for_with_words(api: FakeApi, paddle):
    put(api, "pserver", 0, "10.0.0.1")
    put(
        api,
        "pserver",
        1,
        "",
        phase="Pending",
        state={"waiting": {"reason": "ErrImagePull", "message": "gone"}},
    )
    result = paddle(CLICKMILL_WAIT_S="0.2")
    assert result.returncode == 1
    line = "current cnt: 1 sleep for 0.05 seconds... (ctr-volcano-pserver-1 cannot start, for its image"
    assert line in result.stdout
    assert "1 of 2 pods with label `paddle-job-pserver=fluid-ctr` run after 0.2 seconds" in result.stderr


def test_without_a_token_it_warns_loudly(whole: FakeApi, paddle):
    assert "warning: this job has no token" in paddle().stdout
    result = paddle(CLICKMILL_TOKEN="0123456789abcdef")
    assert "warning" not in result.stdout
    assert result.stdout.splitlines()[-1].endswith("open=")


def test_a_job_with_too_many_failed_trainers_ends_with_an_error(whole: FakeApi, paddle, tmp_path: Path):
    for number in (2, 3):
        put(whole, "trainer", number, "10.0.0.2", phase="Failed")
    result = paddle()
    assert result.returncode == 1
    assert "2 trainers have failed, more than 1" in (tmp_path / "log").read_text()


def test_a_trainer_that_comes_when_the_servers_have_ended_well_ends_well(whole: FakeApi, paddle):
    put(whole, "pserver", 0, "10.0.0.12", phase="Succeeded")
    result = paddle()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "a parameter server has ended well: the run is over"


def test_a_server_of_an_earlier_job_of_the_same_name_says_nothing(whole: FakeApi, paddle):
    put(whole, "pserver", 2, "10.0.0.13", phase="Succeeded", owner="job-0")
    assert paddle(ENTRY="exit 6").returncode == 6


def test_a_server_that_is_started_again_after_its_run_rests_until_others_train(
    whole: FakeApi, paddle, monkeypatch: pytest.MonkeyPatch
):
    last = {"terminated": {"exitCode": 0, "finishedAt": "2026-11-18T02:00:00Z"}}
    put(whole, "pserver", 0, "10.0.0.12", last=last, restarts=1)

    def another_trainer_comes(_seconds: float) -> None:
        later = pod("other-trainer-0", labels={"paddle-job": "fluid-ctr"}, ip="10.0.0.20")
        later["metadata"]["creationTimestamp"] = "2026-11-18T03:00:00Z"
        whole.put_pod(later)

    monkeypatch.setattr(module.time, "sleep", another_trainer_comes)
    role = {"TRAINING_ROLE": "PSERVER", "PADDLE_TRAINING_ROLE": "PSERVER"}
    lines = paddle(POD_NAME="ctr-volcano-pserver-0", **role).stdout.splitlines()
    rests = next(number for number, line in enumerate(lines) if line.startswith("the run is over"))
    assert "delete job ctr-volcano" in lines[rests + 1]
    assert "ips=10.0.0.9,10.0.0.10,10.0.0.20" in lines[-1], "it serves again"


@pytest.mark.parametrize(
    "state",
    [
        {"running": {"startedAt": "2026-11-18T01:00:00Z"}},
        {"terminated": {"exitCode": 0, "finishedAt": "2026-11-18T02:00:00Z"}},
    ],
)
def test_a_server_waits_until_its_own_container_is_told_of(
    whole: FakeApi, paddle, monkeypatch: pytest.MonkeyPatch, state
):
    began = datetime(2026, 11, 18, 2, 0, 10, tzinfo=UTC)
    monkeypatch.setattr(module, "_container_began", began.timestamp)
    put(whole, "pserver", 0, "10.0.0.12", state=state)
    waits = []

    def the_node_tells(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            last = {"terminated": {"exitCode": 0, "finishedAt": "2026-11-18T02:00:00Z"}}
            state = {"running": {"startedAt": "2026-11-18T02:00:09Z"}}
            put(whole, "pserver", 0, "10.0.0.12", state=state, last=last, restarts=1)
        else:
            later = pod("other-trainer-0", labels={"paddle-job": "fluid-ctr"}, ip="10.0.0.20")
            later["metadata"]["creationTimestamp"] = "2026-11-18T03:00:00Z"
            whole.put_pod(later)

    monkeypatch.setattr(module.time, "sleep", the_node_tells)
    role = {"TRAINING_ROLE": "PSERVER", "PADDLE_TRAINING_ROLE": "PSERVER"}
    lines = paddle(POD_NAME="ctr-volcano-pserver-0", **role).stdout.splitlines()
    assert any(line.startswith("the run is over") for line in lines)
    assert len(waits) == 2


def test_an_account_without_rights_is_told_what_to_type(whole: FakeApi, paddle, tmp_path: Path):
    whole.forbidden.add("list pods")
    result = paddle()
    assert result.returncode == 2
    hint = "kubectl -n shop create role fluid-ctr-pods --verb=get,list,watch --resource=pods"
    assert hint in result.stderr
    assert hint in (tmp_path / "log").read_text()


def test_what_the_entry_ends_with_is_told(whole: FakeApi, paddle, tmp_path: Path):
    result = paddle(ENTRY="echo 'error: there is no log' >&2; exit 3")
    assert result.returncode == 3
    assert (tmp_path / "log").read_text() == "error: trainer 1: there is no log"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("start_master", "a master with etcd"),
        ("start_new_trainer", "a master with etcd"),
        ("dance", "means nothing"),
    ],
)
def test_other_commands_say_what_to_use(paddle, command: str, words: str):
    result = paddle(command)
    assert result.returncode == 2
    assert words in result.stderr
    assert "start_fluid" in result.stderr


def test_variables_that_are_missing_are_named(paddle):
    result = paddle(ENTRY="", PADDLE_JOB_NAME="")
    assert result.returncode == 2
    assert "`ENTRY`: is not set" in result.stderr
    assert "`PADDLE_JOB_NAME`: is not set" in result.stderr


def test_the_tenth_pod_comes_after_the_second():
    pods = [pod(f"ctr-trainer-{number}", ip=f"10.0.0.{number}") for number in (10, 2, 1)]
    assert endpoints(sorted(pods, key=name_order), 7) == ["10.0.0.1:7", "10.0.0.2:8", "10.0.0.10:9"]
