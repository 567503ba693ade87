from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from clickmill.cli.exits import exit_code
from clickmill.cli.output import print_json
from clickmill.data.files import compression
from clickmill.errors import ClickmillError, ConfigError, DataError, FormatError, MissingExtra, StateError
from tests.small_files import small_files

from .conftest import Run, Spawn


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ConfigError, 2),
        (DataError, 3),
        (FormatError, 4),
        (StateError, 1),
        (MissingExtra, 1),
        (ClickmillError, 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(kind: type[ClickmillError], code: int) -> None:
    assert exit_code(kind("x")) == code


def test_configuration_error_is_two_lines_on_stderr(spawn: Spawn) -> None:
    result = spawn("config", "check", "-m", "nothing.yaml")
    assert (result.returncode, result.stdout) == (2, "")
    error, hint = result.stderr.splitlines()
    assert error == "error: there is no configuration `nothing.yaml`"
    assert hint.startswith("hint: give a file")


def test_json_error_lists_every_problem(run: Run, config_file: Path) -> None:
    config_file.write_text(config_file.read_text().replace("mode: train", "mode: trian").replace("dnn", "dn"))
    result = run("config", "check", "-m", config_file, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    body = json.loads(result.stderr)
    assert body["exit_code"] == 2
    assert body["error"]["kind"] == "ConfigError"
    assert [(problem["key"], problem["line"]) for problem in body["error"]["problems"]] == [
        ("mode", 2),
        ("phase.0.model", 8),
    ]


def test_json_of_one_command_does_not_leak_into_the_next(run: Run) -> None:
    run("config", "check", "-m", "nothing.yaml", "--json")
    assert run("config", "check", "-m", "nothing.yaml").stderr.startswith("error: ")


def test_missing_data_is_a_data_error(run: Run, tmp_path: Path) -> None:
    result = run("data", "describe", tmp_path / "nothing.tsv")
    assert result.exit_code == 3
    assert "no such file" in result.stderr


@pytest.mark.parametrize("arguments", [("train",), ("data", "synth"), ("nothing",), ("doctor", "--nothing")])
def test_wrong_arguments_are_a_usage_error(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("train", "--json"), "clickmill train"),
        (("--json", "train"), "clickmill train"),
        (("nothing", "--json"), "clickmill"),
        (("data", "split", "--json", "--nothing"), "clickmill data split"),
        (("data", "synth", "log.tsv", "--json", "--rows", str(2**63)), "clickmill data synth"),
    ],
)
def test_wrong_arguments_are_json_where_it_is_wanted(
    spawn: Spawn, arguments: tuple[str, ...], command: str
) -> None:
    result = spawn(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    body = json.loads(result.stderr)
    assert (body["error"]["kind"], body["exit_code"]) == ("UsageError", 2)
    assert body["error"]["hint"] == f"see `{command} --help`"


@pytest.mark.parametrize(
    "arguments",
    [("--json", "data", "split"), ("data", "--json", "split"), ("data", "split", "--json")],
    ids=" ".join,
)
def test_json_may_be_asked_for_before_and_after_the_command(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "log.tsv").write_text("1\n2\n3\n4\n")
    where = (tmp_path / "log.tsv", "-o", tmp_path)
    assert json.loads(run(*arguments, *where, "--fraction", "0.5").stdout)["test_rows"] == 2
    assert json.loads(run(*arguments, *where, "--fraction", "2").stderr)["exit_code"] == 2


@pytest.mark.parametrize(
    ("option", "level"),
    [("-q", logging.WARNING), ("--quiet", logging.WARNING), ("-v", logging.DEBUG), ("", logging.INFO)],
)
def test_talk_is_turned_up_and_down_before_and_after_the_command(run: Run, option: str, level: int) -> None:
    for arguments in ((option, "models"), ("models", option)):
        assert run(*filter(None, arguments)).exit_code == 0
        assert logging.getLogger("clickmill").level == level


def test_warnings_go_to_stderr_and_data_to_stdout(spawn: Spawn, config_file: Path) -> None:
    config_file.write_text(config_file.read_text() + "hyper_parameters: {reg: 0, reg: 1}\n")
    result = spawn("config", "show", "-m", str(config_file), "--json")
    assert json.loads(result.stdout)["hyper_parameters"]["reg"] == 1.0
    assert result.stderr.startswith("warning: ")
    assert "is written twice" in result.stderr


def test_place_that_cannot_be_written_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("data", "synth", tmp_path / "file" / "log.tsv", "--rows", "10")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert str(tmp_path / "file") in result.stderr


def test_json_has_null_where_a_number_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"auc": float("nan"), "all": [float("inf"), 1.5], "path": Path("a")})
    assert json.loads(capsys.readouterr().out) == {"auc": None, "all": [None, 1.5], "path": "a"}


def test_interrupt_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "log.tsv"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "clickmill", "data", "split", str(pipe), "--output", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
    )
    # Opening returns when the command has opened its end, so it is at work from here on.
    with pipe.open("wb"):
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (130, b"")


def test_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        [sys.executable, "-m", "clickmill", "config", "show", "-m", "dnn"],
        stdout=writing, stderr=subprocess.PIPE, check=False, text=True, cwd=tmp_path,
    )  # fmt: skip
    os.close(writing)
    assert "Traceback" not in result.stderr


def test_interrupt_while_modules_are_imported_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    code = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from clickmill.__main__ import main
main()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (130, b"", b"")


def test_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "backend.yaml").write_text(
        "backend: Kubernetes\nsubmit: {files: ./*.none}\nkubernetes: {image: a, namespace: b}\n"
    )
    submit = f'"{sys.executable}" -m clickmill submit -m dnn -b "{tmp_path}/backend.yaml" --dry-run'
    gone = tmp_path / "gone"
    gone.mkdir()
    result = subprocess.run(
        f'rmdir "{gone}"; {submit}', shell=True, capture_output=True, text=True, check=False, cwd=gone,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )  # fmt: skip
    assert result.returncode == 1
    assert "error: the folder in which this command was typed is not there any more\nhint: `cd` to" in (
        result.stderr
    )


def test_installed_command_is_the_one_that_can_be_interrupted() -> None:
    (command,) = entry_points(group="console_scripts", name="clickmill")
    assert command.value == "clickmill.__main__:main"


@pytest.mark.parametrize(
    ("redirection", "code", "words"),
    [
        (">&-", 1, "error: stdout is closed\nhint: send it to /dev/null where nobody reads it\n"),
        (">/dev/full", 1, "error: cannot write to stdout: No space left on device\n"),
        (">/dev/null 2>&-", 0, ""),
    ],
)
def test_stream_that_cannot_be_written_is_no_traceback(
    tmp_path: Path, redirection: str, code: int, words: str
) -> None:
    command = f'"{sys.executable}" -m clickmill models {redirection}'
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (code, words)


class TestFullDisk:
    """A limit on the size of files stands for the disk: the system refuses the write in the same way."""

    def test_part_of_a_split_is_named_and_is_no_data_error(self, run: Run, tmp_path: Path) -> None:
        log = tmp_path / "log.tsv"
        log.write_text("1\t2\n" * 10_000)
        with small_files(1000):
            result = run("data", "split", log, "-o", tmp_path / "out")
        assert result.exit_code == 1
        assert result.stderr == f"error: cannot write `{tmp_path}/out/train-log.tsv`: File too large\n"
        assert list((tmp_path / "out").iterdir()) == []

    def test_made_up_log_is_named(self, run: Run, tmp_path: Path) -> None:
        with small_files(1000):
            result = run("data", "synth", tmp_path / "log.tsv", "--rows", "1000")
        assert result.exit_code == 1
        assert f"error: `{tmp_path}/.log.tsv." in result.stderr


def test_log_that_cannot_be_read_is_a_data_error_in_every_command(run: Run, config_file: Path) -> None:
    """The memory of a process is a file whose first bytes nobody can read, not even root."""
    config_file.write_text(config_file.read_text().replace("{workspace}/train.tsv", "/proc/self/mem"))
    output = ("--set", f"runner.0.output_path={config_file.parent}/run")
    for command in (("data", "describe"), ("train", *output)):
        result = run(*command, "-m", config_file)
        assert (result.exit_code, "/proc/self/mem" in result.stderr) == (3, True), result.stderr
    with pytest.raises(DataError, match="cannot read `/proc/self/mem`: Input/output error"):
        compression(Path("/proc/self/mem"))
