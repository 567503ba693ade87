"""`class: cluster_train`: a process becomes what its environment says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.launched import LAUNCHER, Stage, launched, write_config

TRAIN = (*LAUNCHER, "train", "-m", "config.yaml")
JOB = {
    "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.2:PORT",
    "PADDLE_TRAINERS_NUM": "2",
    "PADDLE_PSERVERS_NUM": "1",
    "FLAGS_communicator_send_queue_size": "5",
    "CPU_NUM": "3",
    "CLICKMILL_TOKEN": "known-to-all",
}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    folder = tmp_path / "stage"
    folder.mkdir()
    write_config(tmp_path, "cluster_train")
    return Stage(folder)


def job(port: int) -> dict[str, str]:
    return {key: value.replace("PORT", str(port)) for key, value in JOB.items()}


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.2", 0)) as probe:
        return probe.getsockname()[1]


def test_processes_of_a_job_become_their_roles(tmp_path, stage):
    environ = job(free_port())
    folders = [tmp_path / name for name in ("server", "first", "second")]
    for folder in folders:
        folder.mkdir()
        write_config(folder, "cluster_train")
    server = {**environ, "TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.2"}
    trainer = {**environ, "TRAINING_ROLE": "TRAINER"}
    stage.write("hold")
    with launched(folders[0], stage, *TRAIN, environ=server) as pserver:
        pserver.wait_until(lambda: "listening" in pserver.words)
        assert stage.alive("pserver") == [pserver.process.pid]
        (told,) = stage.arguments("pserver")
        assert (told["host"], told["index"], told["snapshots"]) == ("127.0.0.2", "0", "run/snapshots")
        with (
            launched(folders[1], stage, *TRAIN, environ={**trainer, "PADDLE_TRAINER_ID": "0"}) as first,
            launched(
                folders[2], stage, *TRAIN, "--json", environ={**trainer, "PADDLE_TRAINER_ID": "1"}
            ) as second,
        ):
            first.wait_until(lambda: len(stage.alive("trainer")) == 2)
            for told in stage.arguments("trainer"):
                assert told["coordinator"] == environ["PADDLE_PSERVERS_IP_PORT_LIST"]
                assert told["token_file"] is None
                assert set(told["set"]) == {
                    'mode="train"',
                    "runner.0.communicator.send_queue_size=5",
                    "runner.0.worker_num=2",
                    "runner.0.server_num=1",
                    "phase.0.thread_num=3",
                }
            assert sorted(each["json"] for each in stage.arguments("trainer")) == [False, True]
            stage.release()
            assert (first.wait(), second.wait()) == (0, 0), first.words + second.words
        assert pserver.wait() == 0
    assert json.loads(second.output.splitlines()[-1]) == [{"run": "config.yaml", "workers": 2}]


def test_a_process_without_a_role_says_what_to_set(tmp_path, stage):
    with launched(tmp_path, stage, *TRAIN, environ={"TRAINING_ROLE": ""}) as run:
        assert run.wait() == 2
    assert "config.yaml:4:" in run.words
    assert "gives this one no role: CLICKMILL_ROLE, PADDLE_TRAINING_ROLE" in run.words
    assert "hint: to start a whole cluster on this machine, use `class: local_cluster_train`" in run.words


def test_an_environment_that_cannot_be_is_refused_with_its_names(tmp_path, stage):
    environ = {**job(1), "TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.22"}
    with launched(tmp_path, stage, *TRAIN, environ=environ) as run:
        assert run.wait() == 2
    assert "error: `POD_IP`: says `127.0.0.22`, which is not among the addresses of" in run.words
