"""Run as a script: become another command, but one that dies with the process that started it.

    python -I -S bound.py PARENT_PID COMMAND [ARGUMENT...]

The kernel kills this process when its parent dies, however that happens; the order survives `exec`. A script
of its own, because code between fork and exec of a process with threads may deadlock. It imports next to
nothing, so that it costs some milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def bind(number: int) -> None:
    """Have the kernel send this process a signal when its parent dies; 0 for none."""
    kernel = ctypes.CDLL(None, use_errno=True)
    if kernel.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        sys.exit(f"error: cannot be bound to the parent process: {os.strerror(ctypes.get_errno())}")


def main(arguments: list[str]) -> None:
    """Never returns."""
    parent, command = int(arguments[0]), arguments[1:]
    bind(int(signal.SIGKILL))
    if os.getppid() != parent:
        sys.exit("error: the parent process has died")  # before the kernel knew what we want
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"error: cannot start `{command[0]}`: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
