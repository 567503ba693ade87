"""A child, and a process above it that is all it has: signals, orphans, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PARENT = """
import ctypes, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to us, as to PID 1
from clickmill.launch.pod.child import Child
child = Child(sys.argv[2:], __import__("os").environ, grace_s=float(sys.argv[1]))
code = child.run()
print("words", list(child.words), child.asked and child.asked.name, flush=True)
sys.exit(code)
"""
DEADLINE_S = 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def start(*command: str, grace_s: float = 20) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, str(grace_s), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def waited(path: Path) -> str:
    """The content of a file, when there is one."""
    end = time.monotonic() + DEADLINE_S
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end, path
        time.sleep(0.01)
    return path.read_text().strip()


def shell(script: str, *, grace_s: float = 20) -> subprocess.Popen[str]:
    return start("bash", "-c", script, grace_s=grace_s)


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_code_is_that_of_the_child(script: str, code: int):
    process = shell(script)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == code


def test_its_words_go_on_and_the_last_ones_are_kept():
    process = shell("echo data; echo one >&2; echo 'error: two' >&2; exit 3")
    stdout, stderr = process.communicate(timeout=DEADLINE_S)
    assert stdout.splitlines()[0] == "data"
    assert "words ['one', 'error: two'] None" in stdout
    assert stderr == "one\nerror: two\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_end_reaches_the_child(folder: Path, number: signal.Signals):
    trap = f"trap 'echo heard; exit 9' {number.name.removeprefix('SIG')}"
    process = shell(f"{trap}; echo > {folder}/ready; while :; do sleep .05; done")
    waited(folder / "ready")
    process.send_signal(number)
    stdout, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 9
    assert "heard" in stdout
    assert f"] {number.name}\n" in stdout


def test_other_signals_reach_it_too(folder: Path):
    process = shell(f"trap 'exit 5' USR1; echo > {folder}/ready; while :; do sleep .05; done")
    waited(folder / "ready")
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 5


def test_a_child_that_does_not_end_is_killed_in_time(folder: Path):
    process = shell(f"trap '' TERM; echo > {folder}/ready; while :; do sleep .05; done", grace_s=0.3)
    waited(folder / "ready")
    process.terminate()
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 137


@pytest.fixture
def orphan(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A parent whose child has left it a grandchild, and the number of that."""
    script = f"(setsid sh -c 'echo $$ > {folder}/orphan; exec sleep 100' &); read -r _ < {folder}/fifo"
    os.mkfifo(folder / "fifo")
    process = shell(script)
    number = int(waited(folder / "orphan"))
    yield process, number
    process.kill()
    process.communicate()


def test_orphans_are_reaped(orphan: tuple[subprocess.Popen[str], int], folder: Path):
    process, number = orphan
    os.kill(number, signal.SIGKILL)
    end = time.monotonic() + DEADLINE_S
    while Path(f"/proc/{number}").exists():  # as a zombie, where nobody takes its exit code
        assert time.monotonic() < end
        time.sleep(0.01)
    (folder / "fifo").write_text("\n")
    process.wait(DEADLINE_S)
    assert process.returncode == 0


def test_a_child_dies_with_its_parent(folder: Path):
    process = shell(f"echo $$ > {folder}/child; exec sleep 100")
    number = int(waited(folder / "child"))
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    end = time.monotonic() + DEADLINE_S
    while _is_alive(number):
        assert time.monotonic() < end
        time.sleep(0.01)


def _is_alive(number: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
