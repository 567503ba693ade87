"""The role of a pod as a child of this process, which may be PID 1 of its container.

The kernel gives PID 1 no default handlers, so that a signal that nobody forwards is lost, and makes it the
parent of every orphan, so that nobody else takes their exit codes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING

from clickmill.errors import ConfigError, StateError
from clickmill.launch.role import OWN_LOG_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

_BOUND = str(Path(__file__).parents[1] / "bound.py")
_ENDING = (signal.SIGTERM, signal.SIGINT)
_FORWARDED = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
GRACE_VARIABLE = "CLICKMILL_GRACE_S"
_GRACE_S = 30.0
"""Kubernetes' own default for `terminationGracePeriodSeconds`."""
_MARGIN_S = 3.0
"""Of the grace period, for our own last words."""
_MAX_WORDS = 50
_MAX_LINE_BYTES = 1 << 16
_DRAIN_S = 5.0


class Child:
    """A command that is run to its end, with everything that reaches this process meanwhile."""

    def __init__(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        grace_s: float,
        before_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`before_end` is run when this process is asked to end, before the child is; it must end by itself.

        What has not ended after `grace_s` seconds is killed.
        """
        self._argv = argv
        self._environ = environ
        self._grace_s = grace_s
        self._before_end = before_end
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: signal.Signals | None = None
        self._has_ended = threading.Event()
        self.words: deque[str] = deque(maxlen=_MAX_WORDS)
        """Its last lines on stderr."""
        self.cpu_s = 0.0
        """That it took over its life, with those of its own children that it waited for."""
        self.peak_bytes = 0
        """Of memory."""

    @property
    def asked(self) -> signal.Signals | None:
        """The signal by which this process was asked to end, if it was."""
        return self._asked

    def end(self) -> None:
        """Ask the child to end, as if this process had been asked to; from any thread."""
        self._hear(signal.SIGTERM)

    def run(self) -> int:
        """Until it has ended; its exit code, as a shell would tell it."""
        with self._signals():
            self._process = self._start()
            assert self._process.stderr is not None
            relay = threading.Thread(target=self._relay, args=(self._process.stderr,), daemon=True)
            relay.start()
            if self._asked is not None:  # before there was anybody to ask
                self._begin_end(self._asked)
            code = self._wait()
        self._has_ended.set()
        self._signal(signal.SIGKILL)  # what it started itself, and left
        relay.join(_DRAIN_S)
        return code

    def _start(self) -> subprocess.Popen[bytes]:
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", _BOUND, str(os.getpid()), *self._argv],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**self._environ, OWN_LOG_VARIABLE: "1"},
                process_group=0,
            )
        except OSError as error:
            raise StateError(f"cannot start `{self._argv[0]}`: {error.strerror or error}") from error

    def _wait(self) -> int:
        """Take every process that ends, until it is ours."""
        assert self._process is not None
        while True:
            pid, status, usage = os.wait4(-1, 0)
            if pid == self._process.pid:
                code = os.waitstatus_to_exitcode(status)
                self.cpu_s, self.peak_bytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
                self._process.returncode = code
                return code if code >= 0 else 128 - code

    def _relay(self, stream: IO[bytes]) -> None:
        is_heard = True
        with stream:
            while line := stream.readline(_MAX_LINE_BYTES):
                self.words.append(line.decode(errors="replace").rstrip("\n"))
                if is_heard:
                    try:
                        os.write(2, line)
                    except OSError:
                        is_heard = False  # nobody looks any more; its last words count all the same

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def heard(number: int, _frame: FrameType | None) -> None:
            self._hear(signal.Signals(number))

        before = {number: signal.signal(number, heard) for number in (*_ENDING, *_FORWARDED)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: signal.Signals) -> None:
        if number not in _ENDING or self._asked is not None:
            self._signal(number)
            return
        self._asked = number
        if self._process is not None:
            self._begin_end(number)

    def _begin_end(self, number: signal.Signals) -> None:
        threading.Thread(target=self._end, args=(number,), daemon=True).start()

    def _end(self, number: signal.Signals) -> None:
        killer = threading.Timer(self._grace_s, self._signal, (signal.SIGKILL,))
        killer.daemon = True
        killer.start()
        try:
            self._before_end()
        finally:
            self._signal(number)
        self._has_ended.wait()
        killer.cancel()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def grace_s(environ: Mapping[str, str]) -> float:
    """Seconds that a role has to end in when the pod is asked to."""
    try:
        told = float(environ.get(GRACE_VARIABLE) or _GRACE_S)
    except ValueError:
        raise ConfigError(f"`{GRACE_VARIABLE}` must be a number of seconds") from None
    return max(1.0, told - _MARGIN_S)
