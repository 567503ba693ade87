"""`clickmill submit` and `python -m clickmill.run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from clickmill.config.backend.secrets import VARIABLES
from clickmill.run import command
from tests.unit.submit.jobs import KINDS, SECRETS, write_job

from .conftest import Run

SUBMIT = ("submit", "-m", "config.yaml", "-b", "backend.yaml")


@pytest.fixture(autouse=True)
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job for PaddleCloud in the current folder, with secrets in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in (*VARIABLES.values(), "PADDLE_PADDLEREC_ROLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", os.defpath)  # no client there
    write_job(tmp_path, *KINDS["mpi"])
    return tmp_path


def test_dry_run_shows_every_file_and_makes_none(run: Run, job: Path) -> None:
    before = sorted(job.iterdir())
    result = run(*SUBMIT, "--dry-run")
    assert result.exit_code == 0
    for name in ("config.yaml", "backend.yaml", "model.py", "before_hook.sh", "config.ini", "job.sh"):
        assert f"==> {name} <==\n" in result.stdout
    assert not any(secret in result.output for secret in SECRETS.values())
    assert sorted(job.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "read"),
    [(("-o", "json"), json.loads), (("--json",), json.loads), (("-o", "yaml"), yaml.safe_load)],
)
def test_dry_run_can_be_read_by_programs(
    run: Run, options: tuple[str, ...], read: Callable[[str], dict[str, object]]
) -> None:
    shown = read(run(*SUBMIT, "--dry-run", *options).stdout)
    assert (shown["backend"], shown["distribute_mode"]) == ("PaddleCloud", "PS_CPU_MPI")
    assert "fs_ugi=***\n" in shown["contents"]["config.ini"]  # type: ignore[index]


def test_dry_run_says_that_nobody_was_asked_and_what_would_ask(run: Run) -> None:
    result = run(*SUBMIT, "--dry-run")
    assert "nothing is sent, and PaddleCloud has not been asked" in result.stderr
    assert "`sh job.sh`" in result.stderr


def test_format_may_be_typed_in_capitals(run: Run, job: Path) -> None:
    assert run(*SUBMIT, "--dry-run", "-o", "YAML").stdout == run(*SUBMIT, "--dry-run", "-o", "yaml").stdout
    assert not (job / "YAML").exists()


def test_dry_run_can_be_written_to_a_new_folder(run: Run, job: Path) -> None:
    assert run(*SUBMIT, "--dry-run", "-o", "plan").exit_code == 0
    assert "fs_ugi=***" in (job / "plan/config.ini").read_text()
    modes = [path.stat().st_mode & 0o777 for path in (job / "plan", *(job / "plan").iterdir())]
    assert modes == [0o700] + [0o600] * (len(modes) - 1), "only its owner reads it"
    result = run(*SUBMIT, "--dry-run", "-o", "plan")
    assert result.exit_code == 2
    assert "`plan` is there already" in result.stderr


def test_without_the_client_the_command_is_told_and_the_exit_code_is_not_0(run: Run, job: Path) -> None:
    result = run(*SUBMIT)
    (folder,) = job.glob("PaddleRec_CTR_*")
    assert result.exit_code == 1
    assert f"The task submission folder is generated at {folder}\nbefore_submit\n" in result.stderr
    assert "error: the job has not been submitted: there is no client `paddlecloud`" in result.stderr
    assert f"`cd {folder} && sh job.sh`" in result.stderr
    assert not any(secret in result.output for secret in SECRETS.values())


def test_json_tells_what_was_made(run: Run) -> None:
    result = run(*SUBMIT, "--json")
    assert result.exit_code == 1
    facts = json.loads(result.stdout)
    assert facts["is_submitted"] is False
    assert facts["command"] == f"cd {facts['folder']} && sh job.sh"
    assert json.loads(result.stderr.splitlines()[-1])["exit_code"] == 1


def test_reply_of_the_platform_is_what_is_printed(
    run: Run, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job / "bin").mkdir()
    (job / "bin/paddlecloud").write_text('#!/bin/sh\necho \'{"jobId": "job-1"}\'\n')
    (job / "bin/paddlecloud").chmod(0o755)
    monkeypatch.setenv("PATH", f"{job}/bin:{os.defpath}")
    result = run(*SUBMIT)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"jobId": "job-1"}
    assert result.stderr.endswith("end submit\n")


def test_problems_of_both_files_are_told_with_their_lines(run: Run, job: Path) -> None:
    text = (job / "config.yaml").read_text()
    text = text.replace("device: cpu", "device: gpu").replace("fleet_mode: ps", "fleet_mode: collective")
    (job / "config.yaml").write_text(text)
    backend = (job / "backend.yaml").read_text()
    (job / "backend.yaml").write_text(backend.replace('"/user/me/train"', '""'))
    result = run(*SUBMIT)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert sum(line.startswith("  config.yaml:") for line in lines) == 2
    assert sum(line.startswith("  backend.yaml:8:") for line in lines) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "yaml"), "give it with `--dry-run`"),
        (("--wait",), "leave out `--wait`"),
        (("--replace",), "is for jobs on Kubernetes"),
        (("--set", "submit.sk=hunter2"), "set CLICKMILL_SK"),
        (("-b", ""), "`--backend` is empty"),
        (("--dry-run", "--json", "-o", "yaml"), "ask for two things"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, options: tuple[str, ...], words: str) -> None:
    result = run(*SUBMIT, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "hunter2" not in result.output


@pytest.mark.parametrize(
    "override",
    [
        "submit.sk=hunter2",
        "config.fs_ugi.x=hunter2",
        'config={fs_name: "afs://x", fs_ugi: "usr,hunter2"}',
        'config={fs_ugi: "u,hunter2", bogus: 1}',
        'submit={ak: hunter2, files: "./*.py", k8s_trainers: x}',
        'submit={"ak": hunter2',
        "submit=ak:hunter2",
        "submit.ak:hunter2",
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_secret_that_is_typed_is_refused_and_shown_nowhere(
    run: Run, options: tuple[str, ...], override: str
) -> None:
    result = run(*SUBMIT, "--dry-run", *options, "--set", override)
    assert result.exit_code == 2
    assert "hunter2" not in result.output


@pytest.mark.parametrize("override", ["runner.0.epochs=key-secret-1", "mode=key-secret-1"])
def test_secret_in_a_wrong_value_is_shown_nowhere(run: Run, job: Path, override: str) -> None:
    typed = run(*SUBMIT, "--dry-run", "--set", override)
    assert typed.exit_code == 2
    assert "key-secret-1" not in typed.output
    text = (job / "config.yaml").read_text()
    (job / "config.yaml").write_text(text.replace("mode:", "mode: key-secret-1 #", 1))
    written = run(*SUBMIT, "--dry-run")
    assert written.exit_code == 2
    assert "key-secret-1" not in written.output


def test_variable_with_the_name_of_a_secret_is_noted_without_its_value(run: Run, job: Path) -> None:
    (job / "backend.yaml").write_text("backend: k8s\nkubernetes: {image: a, namespace: team}\n")
    result = run(*SUBMIT, "--dry-run", "--set", "kubernetes.env.MY_TOKEN=hunter2")
    assert "`kubernetes.env.MY_TOKEN`: has the name of a secret" in result.stderr
    assert "hunter2" not in result.stderr


def test_job_of_this_machine_is_a_command(run: Run, job: Path) -> None:
    (job / "backend.yaml").write_text("backend: local\n")
    result = run(*SUBMIT, "--dry-run")
    assert result.stdout.startswith("clickmill train -m config.yaml --set")
    result = run(*SUBMIT, "--dry-run", "-o", "plan")
    assert result.exit_code == 2
    assert "is a command, not files" in result.stderr


def test_job_of_this_machine_knows_its_file_system(
    run: Run, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}
    monkeypatch.setenv("CLICKMILL_FS_NAME", "")  # what is set here goes when the test ends
    monkeypatch.setenv("CLICKMILL_FS_UGI", "")
    monkeypatch.setattr("clickmill.cli.runs.train_and_tell", lambda *_, **__: seen.update(os.environ))
    (job / "backend.yaml").write_text(
        'backend: Local\nconfig: {fs_name: "hdfs://there:9000", fs_ugi: "me,pass-word"}\n'
    )
    assert run(*SUBMIT).exit_code == 0
    assert seen["CLICKMILL_FS_NAME"] == "hdfs://there:9000"
    assert seen["CLICKMILL_FS_UGI"] == "me,pass-word"


def test_job_for_kubernetes_is_objects(run: Run, job: Path) -> None:
    (job / "backend.yaml").write_text("backend: k8s\nkubernetes: {image: a, namespace: team}\n")
    text = run(*SUBMIT, "--dry-run").stdout
    assert text == run(*SUBMIT, "--dry-run", "-o", "yaml").stdout
    found = [item["kind"] for item in yaml.safe_load_all(text)]
    assert "ServiceAccount" in found
    listed = json.loads(run(*SUBMIT, "--dry-run", "-o", "json").stdout)
    assert (listed["kind"], [item["kind"] for item in listed["items"]]) == ("List", found)
    assert run(*SUBMIT, "--dry-run", "-o", "plan").exit_code == 0
    assert (job / "plan/paddlerecclusterjob.yaml").read_text().rstrip() == text.rstrip()


def test_worker_trains_and_submits_nothing(run: Run, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLE_PADDLEREC_ROLE", "WORKER")
    result = run(*SUBMIT)
    assert result.exit_code == 2
    assert "the environment gives this one no role" in result.stderr  # as `clickmill train` says
    assert not list(job.glob("PaddleRec_CTR_*"))


# python -m clickmill.run


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("-m config.yaml", "train -m config.yaml"),
        ("-m config.yaml -b backend.yaml", "submit -m config.yaml -b backend.yaml"),
        ("--backend=backend.yaml -m c", "submit --backend=backend.yaml -m c"),
        ("-mc -bb", "submit -m c -b b"),
        ("-m=c -b=b", "submit -m c -b b"),
        ("-m paddlerec.models.rank.dnn", "train -m paddlerec.models.rank.dnn"),
        ("", "train"),
    ],
)
def test_a_backend_makes_it_a_submission(typed: str, meant: str) -> None:
    assert command(typed.split()) == meant.split()


def test_its_help_names_both_commands() -> None:
    argv = [sys.executable, "-m", "clickmill.run", "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "clickmill train" in done.stdout
    assert "clickmill submit" in done.stdout


def test_module_is_a_command(job: Path) -> None:
    argv = [sys.executable, "-m", "clickmill.run", "-m", "config.yaml", "-b", "backend.yaml", "--dry-run"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "==> job.sh <==" in done.stdout


# Input of any kind

LONG = "x" * 300


@pytest.mark.parametrize(
    ("backend", "place", "words"),
    [
        (f"backend: MPI\nmpi:\n  hostfile: {LONG}\n", "3:13", "there is no file"),
        ("backend: SSH\nssh:\n  max_restarts: 1\n", "3:3", "cannot read `hosts.yaml`: No such file"),
        ("backend: SSH\nssh:\n  hosts_file: a.yaml\n", "3:15", "cannot read `a.yaml`: No such file"),
        ('backend: MPI\nmpi: {arguments: ["a\\0"]}\n', "2:19", "without null characters"),
        ("backend: k8s\nkubernetes: {image: a,\n  context: zzz}\n", "3:12", "there is no context `zzz`"),
        ('backend: Local\n"a\\e[31m": 1\n', "2:1", r"`a\x1b[31m`: unknown key"),
        ('backend: Local\nsubmit: {job_name: "a\\n"}\n', "2:20", r"not `a\n`"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(
    run: Run, job: Path, monkeypatch: pytest.MonkeyPatch, backend: str, place: str, words: str
) -> None:
    (job / "kubeconfig").write_text("contexts: [{name: one, context: {cluster: c}}]")
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    (job / "backend.yaml").write_text(backend)
    result = run(*SUBMIT, "--dry-run")
    assert result.exit_code == 2
    assert f"error: backend.yaml:{place}: " in result.stderr
    assert words in result.stderr
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-m", ""), "the name of the configuration is empty"),
        (("-m", "folder"), "folder `folder` has no config.yaml"),
        (("-b", "folder"), "folder `folder` has no backend.yaml"),
        (("-b", "no\x1b.yaml"), r"cannot read `no\x1b.yaml`: No such file"),
        (("-b", LONG), f"cannot read `{LONG}`: File name too long"),
    ],
)
def test_file_that_is_not_there_is_told_with_what_to_name(
    run: Run, job: Path, options: tuple[str, ...], words: str
) -> None:
    (job / "folder").mkdir()
    result = run(*SUBMIT, *options)
    assert result.exit_code == 2
    assert f"error: {words}" in result.stderr
    assert "\nhint: " in result.stderr


def test_control_characters_reach_no_terminal_and_every_program(run: Run, job: Path) -> None:
    result = run(*SUBMIT, "-b", "no\x1b\x9b.yaml", "--json")
    assert json.loads(result.stderr)["error"]["message"].startswith("cannot read `no\x1b\x9b.yaml`")
    assert all(letter.isprintable() or letter == "\n" for letter in result.stderr)


def test_yml_is_yaml(run: Run, job: Path) -> None:
    assert run(*SUBMIT, "--dry-run", "-o", "yml").stdout == run(*SUBMIT, "--dry-run", "-o", "yaml").stdout
    assert not (job / "yml").exists()


def test_one_file_is_not_told_as_several(run: Run, job: Path) -> None:
    (job / "backend.yaml").write_text("backend: k8s\nkubernetes: {image: a, namespace: team}\n")
    assert "1 file in `plan`" in run(*SUBMIT, "--dry-run", "-o", "plan").stderr
