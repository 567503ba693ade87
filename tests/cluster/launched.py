"""A command that starts a cluster, in a process of its own, and what its stand-ins show."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEADLINE_SECONDS = 120
LAUNCHER = (sys.executable, str(Path(__file__).with_name("stand_in_launcher.py")))

CONFIG = """\
workspace: "."
mode: train
runner:
- {name: train, class: CLASS, server_num: 2, worker_num: 2, output_path: run, cluster: {max_restarts: 2}}
dataset:
- {name: log, data_path: train.tsv, type: DataLoader}
phase:
- {name: only, model: dnn, dataset_name: log}
"""


@dataclass
class Stage:
    """The folder that steers stand-ins."""

    folder: Path

    def alive(self, role: str) -> list[int]:
        """Process ids of the stand-ins of a role that live."""
        found = [int(path.suffix[1:]) for path in self.folder.glob(f"{role}.*")]
        return sorted(pid for pid in found if is_alive(pid))

    def arguments(self, role: str) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob(f"{role}.*"))]

    def ended(self) -> list[str]:
        path = self.folder / "ended"
        return path.read_text().split() if path.exists() else []

    def write(self, name: str, value: object = "") -> None:
        (self.folder / name).write_text(value if isinstance(value, str) else json.dumps(value))

    def release(self) -> None:
        (self.folder / "hold").unlink()


@dataclass
class Launched:
    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    @property
    def output(self) -> str:
        return self.out.read_text()

    @property
    def words(self) -> str:
        return self.err.read_text()

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        wait_until(is_so, lambda: self.words, self.process)

    def wait(self) -> int:
        try:
            return self.process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.words}") from None

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(
    is_so: Callable[[], bool],
    words: Callable[[], str] = str,
    process: subprocess.Popen[bytes] | None = None,
) -> None:
    """Wait for a state of the world, for as long as `process` can still bring it about."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        has_ended = process is not None and process.poll() is not None
        if has_ended and is_so():
            return
        assert not has_ended, f"ended before it was so:\n{words()}"
        assert time.monotonic() < deadline, f"waited too long:\n{words()}"
        time.sleep(0.005)


@contextlib.contextmanager
def launched(
    folder: Path, stage: Stage, *arguments: str, environ: dict[str, str] | None = None
) -> Iterator[Launched]:
    """Start a command in `folder`; killed at the latest when the block ends."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PADDLE_", "CLICKMILL_"))}
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env={**plain, "STAND_IN": str(stage.folder), **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
    try:
        yield Launched(process, out, err)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def write_config(folder: Path, class_name: str, text: str = CONFIG) -> None:
    (folder / "config.yaml").write_text(text.replace("CLASS", class_name))
    (folder / "train.tsv").write_text("")
