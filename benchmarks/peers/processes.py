"""Processes of one cluster on this machine: started together, measured together, ended by id.

A process tells its starter what it has reached in lines of JSON on a pipe of its own, and is told what to do
in lines on its standard input. What it prints goes to a log, whose end is shown where something fails.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from process_usage import usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

LOG_TAIL_CHARACTERS = 3000
LOOK_INTERVAL_S = 0.5
PR_SET_PDEATHSIG = 1


class ClusterError(RuntimeError):
    """A process ended before its time, or did not answer in time."""


class Process:
    """One process of the cluster."""

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._events, writer = os.pipe()
        self._rest = b""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--events", str(writer)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                cwd=folder,
                pass_fds=[writer],
            )
        os.close(writer)

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """What the process says next; none where it says nothing in time, or never again."""
        if b"\n" not in self._rest and select.select([self._events], [], [], timeout_s)[0]:
            self._rest += os.read(self._events, 1 << 16)
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        event: dict[str, Any] = json.loads(line)
        return event

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._events)
        if self._process.stdin is not None:
            self._process.stdin.close()


class Processes:
    """All processes of the cluster; none is left when the block ends that this is the context of."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: list[Process] = []
        self._stack = ExitStack()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def start(self, name: str, command: Sequence[str], variables: Mapping[str, str]) -> Process:
        process = Process(name, command, variables, self._folder)
        self._stack.callback(process.end)
        self._all.append(process)
        return process

    def hear(self, key: str, process: Process, *, deadline: float) -> Any:
        """The value of `key`, which `process` has to say next; `deadline` is a time of `time.monotonic`.

        Raises ClusterError as soon as any process of the cluster ends: those that wait for it may not notice.
        """
        while True:
            event = process.next_event(LOOK_INTERVAL_S)
            if event is not None and key in event:
                return event[key]
            if event is not None:
                raise ClusterError(f"{process.name} said {event}, expected `{key}`\n{process.log_tail()}")
            for other in self._all:
                if other.exit_code is not None:
                    message = f"{other.name} ended with code {other.exit_code} before `{key}`"
                    raise ClusterError(f"{message}\n{other.log_tail()}")
            if time.monotonic() > deadline:
                raise ClusterError(f"{process.name} did not say `{key}` in time\n{process.log_tail()}")

    def cpu_seconds(self) -> float:
        return sum(usage(process.process_id).all_cpu_s for process in self._all)

    def peak_rss_mb(self) -> float:
        return sum(usage(process.process_id).peak_rss_mb for process in self._all)


def free_ports(count: int) -> list[int]:
    """Ports from the system; they differ, since each is held until the last is there."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def end_with_starter() -> None:
    """Called by a process first of all: the kernel ends it when its starter is gone, however that came."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_with(starter_id: int) -> None:
    """As `end_with_starter`, also where the starter is gone already."""
    end_with_starter()
    if os.getppid() != starter_id:
        raise SystemExit("error: the starter of this process is gone")
