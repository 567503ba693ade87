"""A `clickmill` command in a process of its own, which can be killed.

Processes are forked from a server that has imported torch already, so that a start costs little and a test
can afford many. A process can be told to kill itself at an exact instant: at the n-th call of the operating
system of a kind (`os.rename`, `open`, ...) on a path of a pattern, as Python's audit events tell of them.
"""

from __future__ import annotations

import contextlib
import fnmatch
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.cluster.network import move_to

DEADLINE_SECONDS = 120
PEAK = "peak.txt"


@dataclass(frozen=True)
class Crash:
    """Die at the `count`-th `event` whose first argument is a path that matches `pattern`."""

    event: str
    pattern: str
    count: int = 1


def server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [
            "torch",
            "clickmill.cli",
            "clickmill.train.api",
            "clickmill.train.cluster.trainer",
            "clickmill.ps.pserver",
            "clickmill.train.collective.rank",
            "clickmill.data.parquet",
        ]
    )
    return context


@dataclass
class Command:
    """A running command; its words are in `log`."""

    process: BaseProcess
    log: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def words(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def wait_until(self, is_so: Callable[[], bool]) -> bool:
        """Wait for a state of the world; False if the process ended first."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not is_so():
            if not self.process.is_alive():
                return is_so()
            assert time.monotonic() < deadline, f"waited too long:\n{self.words}"
            time.sleep(0.001)
        return True

    def kill(self, number: int = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self) -> None:
        """Kill it if it lives."""
        if self.process.is_alive():
            self.kill()
        self.process.join()

    def wait(self) -> int:
        """Exit code, negative for a signal."""
        self.process.join(DEADLINE_SECONDS)
        assert self.process.exitcode is not None, f"still running:\n{self.words}"
        return self.process.exitcode

    @property
    def peak_bytes(self) -> int:
        """Most memory that the command had at once; for one that was not killed."""
        return int(self.log.with_name(PEAK).read_text())

    def succeed(self) -> None:
        code = self.wait()
        assert code == 0, f"exit code {code}:\n{self.words}"


@contextlib.contextmanager
def command(
    folder: Path,
    *arguments: str,
    crash: Crash | None = None,
    file_bytes: int | None = None,
    environment: dict[str, str] | None = None,
    log_name: str = "words.log",
) -> Iterator[Command]:
    """Start `clickmill ARGUMENTS` in `folder`; killed at the latest when the block ends.

    With `file_bytes` no file can grow beyond that size, as on a disk that is full.
    """
    running = start(
        folder,
        folder / log_name,
        *arguments,
        crash=crash,
        file_bytes=file_bytes,
        environment=environment,
    )
    try:
        yield running
    finally:
        running.end()


def start(
    folder: Path,
    log: Path,
    *arguments: str,
    crash: Crash | None = None,
    file_bytes: int | None = None,
    environment: dict[str, str] | None = None,
    namespace: str | None = None,
) -> Command:
    """As `command`, for one of several; whoever starts it sees to its end. `namespace`: its network."""
    log.unlink(missing_ok=True)
    process = server().Process(
        target=_run, args=(str(folder), str(log), arguments, crash, file_bytes, environment or {}, namespace)
    )
    process.start()
    return Command(process, log)


def run(folder: Path, *arguments: str, crash: Crash | None = None, file_bytes: int | None = None) -> Command:
    """A command to its end."""
    with command(folder, *arguments, crash=crash, file_bytes=file_bytes) as running:
        running.wait()
        return running


def _run(
    folder: str,
    log: str,
    arguments: tuple[str, ...],
    crash: Crash | None,
    file_bytes: int | None,
    environment: dict[str, str],
    namespace: str | None,
) -> None:
    os.chdir(folder)
    if namespace is not None:
        move_to(namespace)
    os.environ.update(environment)
    words = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(words, 1)
    os.dup2(words, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server ignores it
    if crash is not None:
        _die_at(crash)
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    sys.argv = ["clickmill", *arguments]
    from clickmill.cli import main

    try:
        main()
    finally:
        Path(log).with_name(PEAK).write_text(f"{_peak_bytes()}")


def _peak_bytes() -> int:
    """Most memory that this process has had at once."""
    words = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()
    return int(words[0]) * 1024


def _die_at(crash: Crash) -> None:
    left = crash.count

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event == crash.event and fnmatch.fnmatch(str(arguments[0]), crash.pattern):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
