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
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from clickmill.launch.bound import bind
from clickmill.launch.log import Log

if TYPE_CHECKING:
    from types import FrameType

SILENCE_S = 20.0
"""Several times the interval of the signs of life."""
GRACE_S = 10.0
"""Between being asked to end and being killed."""
_DRAIN_S = 5.0


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
            process_group=0,
        )
        self._silence_s = silence_s
        self._grace_s = grace_s
        self._lock = threading.Lock()

    def run(self) -> int:
        """Until the command has ended; its exit code."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        relays = [
            threading.Thread(target=self._relay, args=(self._process.stdout, 1), daemon=True),
            threading.Thread(target=self._relay, args=(self._process.stderr, 2), daemon=True),
        ]
        for thread in (*relays, threading.Thread(target=self._watch, daemon=True)):
            thread.start()
        code = self._process.wait()
        self._signal(signal.SIGKILL)  # what it started itself
        for relay in relays:
            relay.join(_DRAIN_S)
        return code if code >= 0 else 128 - code

    def end(self) -> None:
        """Ask the command to end; kill it after a while."""
        threading.Thread(target=self._end, daemon=True).start()

    def _end(self) -> None:
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

    def _relay(self, stream: IO[bytes], descriptor: int) -> None:
        is_heard = True
        for line in stream:
            warning = self._write(line.removesuffix(b"\n"))
            if is_heard:
                try:
                    if warning is not None:
                        os.write(2, f"warning: {warning}\n".encode())
                    os.write(descriptor, line)
                except OSError:
                    is_heard = False  # the log has it all the same

    def _note(self, text: str) -> None:
        self._write(text.encode())

    def _write(self, line: bytes) -> str | None:
        if self._log is None:
            return None
        with self._lock:
            return self._log.write(line)


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
