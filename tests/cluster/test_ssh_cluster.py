"""`clickmill ssh-cluster` against a real sshd: job folders, logs, and nothing left on any host."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.launched import LAUNCHER, Stage, launched, wait_until, write_config
from tests.cluster.ssh_daemon import ADDRESSES, Daemon, ssh_daemon, why_not, write_python

if reason := why_not():
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with ssh_daemon(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def stage(tmp_path: Path, daemon: Daemon) -> Stage:
    folder = tmp_path / "stage"
    folder.mkdir()
    write_python(tmp_path / "python")
    package = tmp_path / "package"
    (package / "lists").mkdir(parents=True)
    (package / "lists/train.list").write_text("train.tsv\n")
    write_config(package, "cluster_train")
    write_hosts(tmp_path, daemon)
    return Stage(folder)


def write_hosts(folder: Path, daemon: Daemon, *more: str) -> None:
    user = "root" if os.geteuid() == 0 else os.environ["USER"]
    hosts = [f"{user}@{address}:{daemon.port}" for address in ADDRESSES]
    lines = [
        f"hosts: {json.dumps(hosts)}",
        f"root_dir: {folder}/jobs dir",
        "port: 0",
        f"python: {folder}/python",
        f"ssh_config: {daemon.ssh_config}",
        f"environment: {{STAND_IN: {folder}/stage}}",
        *more,
    ]
    (folder / "hosts.yaml").write_text("\n".join(lines) + "\n")


COMMAND = (*LAUNCHER, "ssh-cluster", "--hosts", "hosts.yaml", "-o", "logs")
RUN = (*COMMAND, "-m", "package/config.yaml")


def is_up(stage: Stage) -> bool:
    return len(stage.alive("pserver")) == 2 and len(stage.alive("trainer")) == 2


def nobody_is_left(stage: Stage) -> bool:
    return not stage.alive("pserver") and not stage.alive("trainer")


def jobs(folder: Path) -> list[Path]:
    return list((folder / "jobs dir").iterdir())


def test_a_job_runs_on_all_hosts_and_its_logs_come_back(tmp_path, stage):
    stage.write("hold")
    with launched(tmp_path, stage, *RUN, "--json", "--set", "runner.0.epochs=2", "--log_period=50") as run:
        run.wait_until(lambda: is_up(stage))
        (job,) = jobs(tmp_path)
        assert job.name.startswith("JOB")
        assert (job / "lists/train.list").read_text() == "train.tsv\n"
        assert (job / "token").stat().st_mode & 0o777 == 0o600
        servers, trainers = stage.arguments("pserver"), stage.arguments("trainer")
        assert {(each["host"], each["index"]) for each in servers} == {("127.0.0.2", "0"), ("127.0.0.3", "1")}
        for each in trainers:
            assert each["coordinator"].startswith("127.0.0.2:")
            assert each["cwd"] == str(job)
            assert each["extra"] == []
            told = ["runner.0.epochs=2", "runner.0.print_interval=50"]
            assert each["set"] == [*told, "runner.0.worker_num=2", "runner.0.server_num=2"]
        stage.release()
        assert run.wait() == 0, run.words
    result = json.loads(run.output)
    assert result["summary"] == [{"run": "config.yaml", "workers": 2}]
    assert result["hosts"] == list(ADDRESSES)
    assert (job / "nodefile").read_text().strip() in {"0", "1"}
    assert not (job / "token").exists()
    for node in (0, 1):
        assert "listening at" in (tmp_path / f"logs/node-{node}/server.log").read_text()
        assert "training config.yaml" in (tmp_path / f"logs/node-{node}/train.log").read_text()
        assert f"trainer {node} | training config.yaml" in run.words
    assert nobody_is_left(stage)


def test_a_workspace_that_is_there_already_is_used(tmp_path, stage):
    with launched(tmp_path, stage, *COMMAND, "-j", str(tmp_path / "package"), "-m", "config.yaml") as run:
        assert run.wait() == 0, run.words
    assert (tmp_path / "package/nodefile").exists()
    assert (tmp_path / "package/log/train.log").exists()
    assert not (tmp_path / "jobs dir").exists()
    assert f"{tmp_path}/package on 127.0.0.2, 127.0.0.3" in run.output


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cleans_up_on_all_hosts(tmp_path, stage, number, code):
    stage.write("hold")
    with launched(tmp_path, stage, *RUN) as run:
        run.wait_until(lambda: is_up(stage))
        run.kill(number)
        assert run.wait() == code, run.words
    assert "logs of all hosts are in `logs`" in run.words
    assert nobody_is_left(stage)
    assert stage.ended()[:3] == ["trainer", "trainer", "pserver"]
    assert "training config.yaml" in (tmp_path / "logs/node-1/train.log").read_text()
    assert not (jobs(tmp_path)[0] / "token").exists()


def test_processes_on_hosts_end_when_the_launcher_is_killed(tmp_path, stage):
    stage.write("hold")
    with launched(tmp_path, stage, *RUN) as run:
        run.wait_until(lambda: is_up(stage))
        run.kill()
        run.wait()
        wait_until(lambda: nobody_is_left(stage))


def test_a_trainer_that_dies_on_its_host_is_started_again(tmp_path, stage):
    stage.write("hold")
    with launched(tmp_path, stage, *RUN) as run:
        run.wait_until(lambda: is_up(stage))
        before = stage.alive("trainer")
        os.kill(before[0], signal.SIGKILL)
        run.wait_until(lambda: is_up(stage) and stage.alive("trainer") != before)
        stage.release()
        assert run.wait() == 0, run.words
    assert "was killed by SIGKILL; started again, 1 of 3 times" in run.words


def test_a_rank_that_dies_on_its_host_ends_a_collective_run(tmp_path, stage):
    stage.write("hold")
    with launched(tmp_path, stage, *RUN, "--set", "runner.0.fleet_mode=collective") as run:
        run.wait_until(lambda: len(stage.alive("trainer")) == 2)
        os.kill(stage.alive("trainer")[0], signal.SIGKILL)
        assert run.wait() == 1, run.words
    assert "was killed by SIGKILL" in run.words
    assert "started again" not in run.words
    assert nobody_is_left(stage)


def test_a_failure_on_a_host_has_its_words_and_its_code(tmp_path, stage):
    stage.write("fail", {"exit": 3, "error": {"kind": "DataError", "message": "no label", "hint": None}})
    with launched(tmp_path, stage, *RUN) as run:
        assert run.wait() == 3, run.words
    assert ": no label\n" in run.words
    assert nobody_is_left(stage)


def test_a_host_that_cannot_be_reached_is_named(tmp_path, stage, daemon):
    (tmp_path / "empty_config").write_text("StrictHostKeyChecking yes\nUserKnownHostsFile /dev/null\n")
    text = (
        (tmp_path / "hosts.yaml").read_text().replace(str(daemon.ssh_config), str(tmp_path / "empty_config"))
    )
    (tmp_path / "hosts.yaml").write_text(text)
    with launched(tmp_path, stage, *RUN) as run:
        assert run.wait() == 1, run.words
    assert "error: cannot connect to `127.0.0." in run.words
    assert "Host key verification failed" in run.words
    # As it was tried, for a person to try it.
    assert f"`ssh -F {tmp_path}/empty_config -l " in run.words
    assert f" -p {daemon.port} 127.0.0." in run.words
    assert " true` must work without a password" in run.words


@pytest.mark.parametrize("words", ["exit 9", "echo No module named clickmill >&2; exit 1", None])
def test_a_python_without_clickmill_is_told_before_anything_is_made(tmp_path, stage, words):
    python = tmp_path / "python"
    if words is None:
        python.unlink()
    else:
        python.write_text(f"#!/bin/sh\n{words}\n")
    with launched(tmp_path, stage, *RUN) as run:
        assert run.wait() == 2, run.words
    assert f"`python: {python}` does not run clickmill" in run.words
    assert "name the Python that has it as `python` in hosts.yaml" in run.words
    assert not (tmp_path / "jobs dir").exists()


@pytest.mark.parametrize("python", ["python", "../python"])
def test_python_is_looked_for_as_the_job_will(tmp_path, stage, python):
    """By the variables of the hosts, and from the workspace."""
    (tmp_path / "python").write_text(
        (tmp_path / "python").read_text().replace("#!/bin/sh", '#!/bin/sh\n[ -n "$STAND_IN" ] || exit 9')
    )
    hosts = tmp_path / "hosts.yaml"
    path = f"environment: {{PATH: '{tmp_path}:{os.environ['PATH']}', "
    text = hosts.read_text().replace(f"python: {tmp_path}/python", f"python: {python}")
    hosts.write_text(text.replace("environment: {", path))
    with launched(tmp_path, stage, *COMMAND, "-j", str(tmp_path / "package"), "-m", "config.yaml") as run:
        assert run.wait() == 0, run.words


def test_a_workspace_that_is_not_there_is_told(tmp_path, stage):
    with launched(tmp_path, stage, *COMMAND, "-j", str(tmp_path / "nowhere"), "-m", "config.yaml") as run:
        assert run.wait() == 2, run.words
    assert f"has no folder `{tmp_path}/nowhere`" in run.words
    assert "`ssh.workspace` (`-j`)" in run.words


def test_a_configuration_is_checked_where_it_is_used(tmp_path, stage):
    with launched(tmp_path, stage, *RUN, "--set", "runner.0.epochs=none") as run:
        assert run.wait() != 0
    assert "`127.0.0.2`: " in run.words
    assert "must be a whole number" in run.words
    assert nobody_is_left(stage)
