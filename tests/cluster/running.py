"""A cluster of real processes that trains, to be looked at and disturbed."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clickmill.ps.admin import Admin
from tests.cluster.process import DEADLINE_SECONDS, Command, command

CONFIG = """
workspace: "{folder}"
mode: train
runner:
- name: train
  class: train
  epochs: 1
  print_interval: 5
  output_path: {folder}/run
  distribute_strategy: async
  worker_num: 1
  cluster: {{snapshot_interval_s: 3600, lease_bytes: 20000}}
dataset:
- name: log
  format: slots
  data_path: {folder}/train.txt
  batch_size: 20
  schema:
    slots:
    - {{kind: label, name: click}}
    - {{kind: dense, name: price}}
    - {{kind: sparse, name: user}}
    - {{kind: sparse, name: item}}
phase:
- {{name: only, model: "{{workspace}}/model.py", dataset_name: log}}
hyper_parameters:
  optimizer: {{class: Adam, learning_rate: 0.01}}
  sparse_feature_dim: 4
"""

MODEL = '''
import threading
from pathlib import Path

import torch

from clickmill import nn

HURRY = Path(__file__).with_name("hurry")


class Model(nn.Model):
    """One layer; takes its time until the file `hurry` is there, so that a test can catch a run at work."""

    def __init__(self, inputs, hyper):
        super().__init__(inputs, hyper)
        table = inputs.tables["embedding"]
        self.out = torch.nn.Linear(inputs.num_dense + table.dim * len(table.slots), 1)

    def forward(self, batch):
        if not HURRY.exists():
            threading.Event().wait(PAUSE)
        x_BX = torch.cat([batch.dense_BF, batch.pooled["embedding"].flatten(1)], dim=1)
        return self.out(x_BX).squeeze(1)
'''


def write_samples(path: Path, count: int, users: int = 500) -> None:
    """A small log: the same for the same arguments."""
    lines = (
        f"click:{number * 7 % 5 // 4} price:0.{number % 97:02d} user:u{number * 31 % users} "
        f"item:i{number * 17 % 301}\n"
        for number in range(count)
    )
    path.write_text("".join(lines))


@dataclass
class Running:
    """Processes of one run; all of them are gone when its block ends."""

    folder: Path
    stack: contextlib.ExitStack
    pservers: list[Command] = field(default_factory=list)
    trainers: list[Command] = field(default_factory=list)
    address: str = ""
    metrics: list[str | None] = field(default_factory=list)

    def pserver(self, *arguments: str) -> Command:
        """Start one more server; the first is the coordinator."""
        number = len(self.pservers)
        known = ("--coordinator", self.address) if self.address else ()
        common = ("pserver", "--snapshots", str(self.folder / "run/snapshots"))
        started = self._start(f"pserver-{number}", *common, *known, *arguments)
        started.wait_until(lambda: bool(self._line(started)))
        line = self._line(started)
        assert line, started.words
        self.address = self.address or line["address"]
        self.metrics.append(line.get("metrics"))
        self.pservers.append(started)
        return started

    def trainer(self, *overrides: str, arguments: tuple[str, ...] = ()) -> Command:
        """Start one more trainer."""
        number = len(self.trainers)
        sets = [word for override in overrides for word in ("--set", override)]
        config = ("trainer", "-m", str(self.folder / "config.yaml"), "--coordinator", self.address)
        started = self._start(f"trainer-{number}", *config, "--name", f"t{number}", *sets, *arguments)
        self.trainers.append(started)
        return started

    @property
    def admin(self) -> Admin:
        return Admin(self.address, token=None)

    def wait_for(self, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first status of which something holds."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        admin = self.admin
        while True:
            status = admin.status()
            if is_so(status):
                return status
            assert time.monotonic() < deadline, f"waited too long: {status}\n{self.words}"
            time.sleep(0.02)

    def hurry(self) -> None:
        """Let the model take no more time than it needs."""
        (self.folder / "hurry").touch()

    def end(self) -> None:
        """Wait until all have ended well."""
        for process in (*self.trainers, *self.pservers):
            process.succeed()

    @property
    def words(self) -> str:
        return "\n".join(
            f"{each.log.parent.name}:\n{each.words}" for each in (*self.pservers, *self.trainers)
        )

    def _start(self, name: str, *arguments: str) -> Command:
        processes = self.folder / "processes"
        processes.mkdir(exist_ok=True)
        folder = processes / f"{len(list(processes.iterdir()))}-{name}"
        folder.mkdir()
        return self.stack.enter_context(command(folder, *arguments))

    def _line(self, started: Command) -> dict[str, Any]:
        for line in started.words.splitlines(keepends=True):
            if line.startswith('{"role"') and line.endswith("\n"):
                found: dict[str, Any] = json.loads(line)
                return found
        return {}


@contextlib.contextmanager
def cluster(folder: Path, *, samples: int = 4000, pause: float = 0.0, users: int = 500) -> Iterator[Running]:
    """A folder with data, a model and a configuration, and processes to come; batches take `pause` longer."""
    folder.mkdir(parents=True, exist_ok=True)
    write_samples(folder / "train.txt", samples, users)
    (folder / "config.yaml").write_text(CONFIG.format(folder=folder))
    (folder / "model.py").write_text(MODEL.replace("PAUSE", repr(pause)))
    if not pause:
        (folder / "hurry").touch()
    with contextlib.ExitStack() as stack:
        yield Running(folder, stack)
