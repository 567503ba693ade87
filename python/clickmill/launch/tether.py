"""Run on a host of an ssh cluster: a command that lives as long as whoever started it keeps speaking.

    python -m clickmill.launch.tether [--log FILE] [--silence S] [--grace S] -- COMMAND [ARGUMENT...]

Lines of the command go to stdout and stderr, and all of them to the log. When stdin is closed, or silent for
too long, the connection or the launcher has died: the command is asked to end, and then killed, and with it
all of its group.

On this machine it holds a command that starts others, which the kernel would not end with us. Nothing is
between us here that could be lost without a word, so that silence means nothing: `--silence 0`.

Threads, not one loop: a write to a connection that has died may block for minutes, and must not keep the
command alive.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from clickmill.launch.bound import bind
from clickmill.launch.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SILENCE_S = 20.0
"""Several times the interval of the signs of life."""
GRACE_S = 10.0
"""Between being asked to end and being killed."""
_DRAIN_S = 5.0
_POLL_S = 0.05
_CHUNK_BYTES = 1 << 16
_PIPE_BYTES = 1 << 20
"""A pipe holds no more, unless its owner is privileged."""


class Tether:
    """A running command and what ends it."""

    def __init__(
        self,
        command: list[str],
        log: Path | None,
        silence_s: float | None = SILENCE_S,
        grace_s: float = GRACE_S,
    ) -> None:
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
        self._log = None if log is None else Log(log)
        bound = str(Path(__file__).with_name("bound.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", bound, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Without a terminal: a command that asks somebody there fails, and is not stopped for ever.
            start_new_session=True,
        )
        self._silence_s = silence_s
        self._grace_s = grace_s
        self._lock = threading.Lock()
        self._is_ending = threading.Event()

    def run(self) -> int:
        """Until the command has ended; its exit code."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        note = None if self._log is None else self._write
        relays = [_Relay(self._process.stdout, 1, note), _Relay(self._process.stderr, 2, note)]
        for thread in (*relays, threading.Thread(target=self._watch, daemon=True)):
            thread.start()
        code = self._process.wait()
        if self._is_ending.is_set():
            self._await_group()
        self._signal(signal.SIGKILL)  # what it started itself
        for relay in relays:
            relay.drain()
        return code if code >= 0 else 128 - code

    def _await_group(self) -> None:
        """What the command has started was asked to end with it, and has the same time for it."""
        end = time.monotonic() + self._grace_s
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < end:
                os.killpg(self._process.pid, 0)
                time.sleep(_POLL_S)

    def end(self) -> None:
        """Ask the command to end; kill it after a while."""
        threading.Thread(target=self._end, daemon=True).start()

    def _end(self) -> None:
        self._is_ending.set()
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(self._grace_s)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _watch(self) -> None:
        while True:
            readable, _, _ = select.select([0], [], [], self._silence_s)
            if not readable:
                self._note(f"tether.ended reason=silence seconds={self._silence_s:g}")
                break
            if not os.read(0, 4096):
                self._note("tether.ended reason=closed")
                break
        self._end()

    def _note(self, text: str) -> None:
        self._write(text.encode())

    def _write(self, line: bytes) -> str | None:
        if self._log is None:
            return None
        with self._lock:
            return self._log.write(line)


class _Relay(threading.Thread):
    """Passes on what one stream of the command says: in lines where they are noted, else as it comes."""

    def __init__(
        self, stream: IO[bytes], descriptor: int, note: Callable[[bytes], str | None] | None
    ) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._descriptor = descriptor
        self._note = note
        self._num_bytes = 0
        self._is_writing = False

    def run(self) -> None:
        is_heard = True
        for part in self._stream if self._note is not None else iter(self._read, b""):
            self._num_bytes += len(part)
            warning = None if self._note is None else self._note(part.removesuffix(b"\n"))
            if is_heard:
                self._is_writing = True
                try:
                    if warning is not None:
                        os.write(2, f"warning: {warning}\n".encode())
                    self._write(part)
                except OSError:
                    is_heard = False  # the log has it all the same
                self._is_writing = False

    def drain(self) -> None:
        """When the command has ended: until all that it said has been passed on.

        Where that is noted, whoever listens may be gone. Else it is a process of this machine: slow perhaps,
        but there. Somebody else may hold the stream: no more is awaited than was in it.
        """
        if self._note is not None:
            self.join(_DRAIN_S)
            return
        end, before = self._num_bytes + _PIPE_BYTES, -1
        while self.is_alive() and self._num_bytes < end and (self._is_writing or self._num_bytes > before):
            before = self._num_bytes
            self.join(_DRAIN_S)

    def _read(self) -> bytes:
        return os.read(self._stream.fileno(), _CHUNK_BYTES)

    def _write(self, content: bytes) -> None:
        while content:
            content = content[os.write(self._descriptor, content) :]


def main() -> NoReturn:
    """Exit code of the command; 128 and its number for a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path)
    parser.add_argument("--silence", type=float, default=SILENCE_S)
    parser.add_argument("--grace", type=float, default=GRACE_S)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    bind(0)  # killed with whoever started us, we could not end what the command has started
    tether = Tether(arguments.command, arguments.log, arguments.silence or None, arguments.grace)

    def asked(_number: int, _frame: FrameType | None) -> None:
        tether.end()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, asked)
    code = tether.run()
    sys.stdout.flush()
    os._exit(code)  # a relay may still be stuck in a write


if __name__ == "__main__":
    main()
