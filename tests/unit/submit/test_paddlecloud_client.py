"""The client of PaddleCloud while it runs: what is heard of it, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .jobs import KINDS, write_job

SUBMIT = (sys.executable, "-m", "clickmill", "submit", "-m", "config.yaml", "-b", "backend.yaml")
LINGERS = """\
#!/bin/sh
# Deaf, and with a child. All that is alive of it holds LIFE open.
trap '' TERM INT HUP
exec 9> "$LIFE"
sleep 60 &
echo started >&9
wait
touch "$SUBMITTED"
"""

Client = Callable[[str], None]


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch, secrets: tuple[str, ...]) -> Client:
    """Puts a program on PATH as the client, for the job in the current folder."""
    write_job(folder, *KINDS["mpi"])
    (folder / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("LIFE", f"{folder}/life")
    monkeypatch.setenv("SUBMITTED", f"{folder}/submitted")

    def write(text: str) -> None:
        (folder / "bin/paddlecloud").write_text(text)
        (folder / "bin/paddlecloud").chmod(0o755)

    return write


@pytest.fixture
def submitting(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`clickmill submit` in a process of its own, started and left to the test."""
    os.mkfifo(folder / "life")
    with subprocess.Popen(SUBMIT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        yield process
        if process.poll() is None:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_client_and_its_children_end_with_the_command(
    number: signal.Signals, client: Client, folder: Path, request: pytest.FixtureRequest
) -> None:
    client(LINGERS)
    process = request.getfixturevalue("submitting")
    with (folder / "life").open() as life:
        assert life.readline() == "started\n"
        process.send_signal(number)
        assert life.read() == "", "nothing of the client is alive"
    expected = {signal.SIGKILL: -signal.SIGKILL}
    assert process.wait() == expected.get(number, 128 + number)
    assert not (folder / "submitted").exists()
