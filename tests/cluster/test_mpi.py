"""`mpirun -n N clickmill train`: ranks get roles, find each other, and end together."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.cluster.launched import LAUNCHER, Stage, launched, wait_until, write_config

if shutil.which("mpirun") is None:
    pytest.skip("mpirun is not installed (Debian: openmpi-bin)", allow_module_level=True)


def mpirun(ranks: int, *options: str) -> tuple[str, ...]:
    mpi = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks))
    return (*mpi, *LAUNCHER, "train", "-m", "config.yaml", *options)


@pytest.fixture(params=["cluster_train", "local_cluster_train"])
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    folder = tmp_path / "stage"
    folder.mkdir()
    write_config(tmp_path, request.param)
    text = (tmp_path / "config.yaml").read_text().replace("server_num: 2, worker_num: 2, ", "server_num: 1, ")
    (tmp_path / "config.yaml").write_text(text)
    return Stage(folder)


def test_ranks_become_servers_and_trainers_and_one_tells_the_summary(tmp_path, stage):
    stage.write("hold")
    options = ("--json", "--set", "runner.0.server_num=2")
    with launched(tmp_path, stage, *mpirun(4, *options)) as run:
        run.wait_until(lambda: run.words.count("| listening at") == 2 and len(stage.alive("trainer")) == 2)
        servers = stage.arguments("pserver")
        assert sorted(each["index"] for each in servers) == ["0", "1"]
        assert all(".worker_num=2" in each["set"][-1] for each in stage.arguments("trainer"))
        stage.release()
        assert run.wait() == 0, run.words
    assert json.loads(run.output) == [{"run": "config.yaml", "workers": 2}]
    assert not stage.alive("pserver")
    assert list((tmp_path / "run/rendezvous").iterdir()) == []
    for name in ("pserver 0", "pserver 1", "trainer 0", "trainer 1"):
        assert f"{name} | " in run.words


def test_half_of_the_ranks_of_a_paddlecloud_job_are_servers(tmp_path, stage):
    text = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("server_num: 1, ", ""))
    environ = {"PADDLE_PADDLEREC_ROLE": "WORKER", "PADDLEREC_CLUSTER_TYPE": "MPI"}
    stage.write("hold")
    with launched(tmp_path, stage, *mpirun(4), environ=environ) as run:
        run.wait_until(lambda: len(stage.alive("pserver")) == 2 and len(stage.alive("trainer")) == 2)
        stage.release()
        assert run.wait() == 0, run.words


def test_a_rank_starts_its_role_again(tmp_path, stage):
    stage.write("hold")
    with launched(tmp_path, stage, *mpirun(2)) as run:
        run.wait_until(lambda: len(stage.alive("trainer")) == 1)
        (before,) = stage.alive("trainer")
        os.kill(before, signal.SIGKILL)
        run.wait_until(lambda: bool(set(stage.alive("trainer")) - {before}))
        stage.release()
        assert run.wait() == 0, run.words


def test_the_end_of_mpirun_ends_all_roles(tmp_path, stage):
    stage.write("hold")
    with launched(tmp_path, stage, *mpirun(3)) as run:
        run.wait_until(lambda: len(stage.alive("trainer")) == 2)
        run.kill(signal.SIGTERM)
        assert run.wait() != 0
        wait_until(lambda: not stage.alive("trainer") and not stage.alive("pserver"))


def test_a_failure_of_one_rank_is_the_failure_of_the_job(tmp_path, stage):
    stage.write("fail", {"exit": 3, "error": {"kind": "DataError", "message": "no label", "hint": None}})
    with launched(tmp_path, stage, *mpirun(2)) as run:
        assert run.wait() == 3, run.words
        assert "error: trainer 0: no label" in run.words
        wait_until(lambda: not stage.alive("trainer") and not stage.alive("pserver"))


def test_too_few_ranks_are_refused(tmp_path, stage):
    with launched(tmp_path, stage, *mpirun(2, "--set", "runner.0.server_num=2")) as run:
        assert run.wait() == 2
    assert "2 ranks are too few for 2 servers and a trainer" in run.words


def test_ranks_of_a_collective_run_are_all_workers(tmp_path, stage):
    stage.write("hold")
    with launched(tmp_path, stage, *mpirun(3, "--set", "runner.0.fleet_mode=collective")) as run:
        run.wait_until(lambda: len(stage.alive("trainer")) == 3)
        found = [each["environ"] for each in stage.arguments("trainer")]
        assert sorted(each["RANK"] for each in found) == ["0", "1", "2"]
        assert len({each["MASTER_PORT"] for each in found}) == 1
        stage.release()
        assert run.wait() == 0, run.words
