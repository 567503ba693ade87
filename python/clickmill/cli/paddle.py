"""`paddle_k8s`: the name under which jobs of PaddlePaddle on Kubernetes call the launcher of their pods."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from clickmill.cli.exits import TERMINATED, exit_code, tell
from clickmill.cli.output import print_text
from clickmill.errors import ClickmillError, ConfigError
from clickmill.launch.pod.last_words import error_words, write_last_words
from clickmill.launch.pod.paddle import PaddleLauncher, read_job

COMMANDS = {"start_fluid": None, "start_pserver": "PSERVER", "start_trainer": "TRAINER"}
"""With the role that they give; `start_fluid` leaves that to the environment."""
WITH_ETCD = ("start_master", "start_new_pserver", "start_new_trainer")
USAGE = """\
usage: paddle_k8s start_fluid | start_pserver | start_trainer

Run $ENTRY in a pod of a PaddlePaddle job as soon as the other pods of the job run.
"""


def main() -> NoReturn:
    """Entry point of the `paddle_k8s` command."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command in {"", "-h", "--help"}:
        sys.stderr.write(USAGE)
        sys.exit(0 if command else 2)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(TERMINATED))  # PID 1 has no default for it
    try:
        code = _launch(command)
    except ClickmillError as error:
        write_last_words(error_words(error), os.environ)
        tell(error, as_json=False)
        code = exit_code(error)
    sys.exit(code)


def _launch(command: str) -> int:
    if command in WITH_ETCD:
        raise ConfigError(
            f"`paddle_k8s {command}` is of a time when a master with etcd gave out the data",
            hint="the coordinator in the first parameter server does that: use `paddle_k8s start_fluid`",
        )
    if command not in COMMANDS:
        raise ConfigError(f"`paddle_k8s {command}` means nothing", hint=USAGE.splitlines()[0])
    print_text('+ case "$1" in')
    return PaddleLauncher(read_job(os.environ, COMMANDS[command]), os.environ, print_text).run()
