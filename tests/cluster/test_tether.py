"""What hangs on a tether ends with whoever holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clickmill.launch.tether import _Relay
from tests.cluster.launched import is_alive, wait_until

SPEAK = "import os, sys; print(os.getpid(), flush=True); print('words', file=sys.stderr, flush=True); "
FOREVER = SPEAK + "import threading; threading.Event().wait()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + FOREVER


def tether(code: str, *options: str) -> list[str]:
    argv = [sys.executable, "-m", "clickmill.launch.tether", "--log", "log/a.log", *options, "--"]
    return [*argv, sys.executable, "-c", code]


@contextmanager
def tethered(folder: Path, code: str, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A tether around a Python program, and the id of that program."""
    with subprocess.Popen(
        tether(code, *options),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            if process.poll() is None:
                process.kill()


def test_output_code_and_log_are_those_of_the_command(tmp_path: Path) -> None:
    with tethered(tmp_path, SPEAK + "sys.exit(3)") as (process, pid):
        assert process.wait(60) == 3
        assert process.stderr is not None
        assert process.stderr.read() == b"words\n"
    assert sorted((tmp_path / "log/a.log").read_text().split()) == sorted([str(pid), "words"])


def test_a_log_that_cannot_be_written_is_told_of_once_and_every_line_is_heard(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log/a.log").symlink_to("/dev/full")
    with tethered(tmp_path, SPEAK + "print('more', file=sys.stderr); sys.exit(3)") as (process, _pid):
        assert process.wait(60) == 3
        assert process.stderr is not None
        lines = process.stderr.read().decode().splitlines()
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert "cannot write to `log/a.log`: No space left on device" in warnings[0]
    assert [line for line in lines if line not in warnings] == ["words", "more"]


def test_a_closed_connection_ends_the_command(tmp_path: Path) -> None:
    with tethered(tmp_path, FOREVER) as (process, pid):
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.wait(60) == 128 + signal.SIGTERM
        assert not is_alive(pid)
    assert "reason=closed" in (tmp_path / "log/a.log").read_text()


def test_silence_ends_the_command(tmp_path: Path) -> None:
    with subprocess.Popen(
        tether(FOREVER, "--silence", "0.1"), cwd=tmp_path, stdin=subprocess.PIPE
    ) as process:
        assert process.wait(60) == 128 + signal.SIGTERM
    assert "reason=silence" in (tmp_path / "log/a.log").read_text()


def test_a_command_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    with tethered(tmp_path, DEAF, "--grace", "0.1") as (process, pid):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 128 + signal.SIGKILL
        assert not is_alive(pid)


def test_a_killed_tether_takes_the_command_with_it(tmp_path: Path) -> None:
    with tethered(tmp_path, FOREVER) as (process, pid):
        process.kill()
        process.wait()
        wait_until(lambda: not is_alive(pid))


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "clickmill.launch.tether", "--log", "a.log", "--", "no-such-command"]
    with subprocess.Popen(argv, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.wait(60) == 1
    assert "cannot start `no-such-command`" in (tmp_path / "a.log").read_text()


def test_a_command_has_no_terminal(tmp_path: Path) -> None:
    with tethered(tmp_path, SPEAK + "sys.exit(os.getsid(0) == os.getpid())") as (process, _pid):
        assert process.wait(60) == 1, "one in a session of its own has none"


def test_all_that_a_command_has_said_waits_for_a_slow_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickmill.launch.tether._DRAIN_S", 0.001)
    (said, says), (heard, hears) = os.pipe(), os.pipe()
    for pipe in (says, hears):
        os.write(pipe, bytes(60_000))  # no second time so much finds room
    os.close(says)
    looks = threading.Semaphore(0)
    with os.fdopen(said, "rb") as stream:
        relay = _Relay(stream, hears, None)
        join = relay.join

        def counted(timeout: float | None = None) -> None:
            join(timeout)
            looks.release()

        monkeypatch.setattr(relay, "join", counted)
        relay.start()
        draining = threading.Thread(target=relay.drain)
        draining.start()
        for _ in range(10):
            assert looks.acquire(timeout=60)
        assert draining.is_alive(), "nobody has listened yet"
        with os.fdopen(heard, "rb") as listener:
            assert len(listener.read(120_000)) == 120_000
        draining.join()
        assert not relay.is_alive()
    os.close(hears)
