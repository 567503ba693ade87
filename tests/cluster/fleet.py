"""A cluster of real processes, any of which can be killed, stopped and started again."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clickmill.errors import WireError
from clickmill.ps.coordinator import Coordinator
from clickmill.ps.wire import wire_settings
from tests.cluster.network import Island
from tests.cluster.process import Command, start

DEADLINE_SECONDS = 120
DEAD_AFTER_S = 4.0
WAIT_S = 60.0

CONFIG = """
workspace: "."
mode: train
runner:
- name: train
  class: train
  epochs: 2
  print_interval: 1000
  output_path: run
  distribute_strategy: sync
  worker_num: 2
  server_num: 2
  cluster: {lease_bytes: 30000, snapshot_interval_s: 0.1, snapshot_full_interval: 3, geo_step: 2}
dataset:
- name: log
  format: slots
  data_path: train.txt
  validation: {data_path: test.txt}
  batch_size: 100
  max_bad_lines: null
  schema:
    slots:
    - {kind: label, name: click}
    - {kind: dense, name: price}
    - {kind: sparse, name: user}
    - {kind: sparse, name: item}
    - {kind: sparse, name: tags, pooling: mean, max_length: 3, missing: skip}
phase:
- {name: only, model: dnn, dataset_name: log}
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.01}
  sparse_feature_dim: 4
  fc_sizes: [256, 64] # enough for frames that go through shared memory
"""
SAMPLES = 3950
"""Lines of the training data that can be read."""
BAD_LINES = 41
"""Those between them that cannot."""
HELD_OUT = 700
TOKEN = "0123456789abcdef0123456789abcdef"


@dataclass
class Fleet:
    """Servers and trainers of one run, in one folder."""

    folder: Path
    pservers: int
    trainers: int
    options: tuple[str, ...] = ()
    dead_after_s: float = DEAD_AFTER_S
    wait_s: float = WAIT_S
    gather_s: float = WAIT_S
    snapshots: str = "run/snapshots"
    island: Island | None = None
    """Where `exiles` are; all others have the network of this process, and all need the token."""
    exiles: tuple[str, ...] = ()
    file_bytes: int | None = None
    """No file of a server can grow beyond this, as on a disk that is full."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of all processes."""
    servers: list[Command] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    members: list[Command] = field(default_factory=list)
    everyone: list[Command] = field(default_factory=list)

    def start(self) -> None:
        for index in range(self.pservers):
            self.start_server(index)
        for _ in range(self.trainers):
            self.start_trainer()

    def start_server(self, index: int, *, elsewhere: bool = False) -> Command:
        """Start a server, or start it again, at the address that it had or `elsewhere`."""
        server = self.launch_server(index, elsewhere=elsewhere)
        assert server.wait_until(lambda: '"address"' in server.words), server.words
        address = next(json.loads(line)["address"] for line in server.words.splitlines() if "{" in line)
        self.servers[index : index + 1] = [server]
        self.addresses[index : index + 1] = [address]
        return server

    def launch_server(self, index: int, *, elsewhere: bool = False) -> Command:
        """The same, without waiting until it listens."""
        known = index < len(self.addresses) and not elsewhere
        port = self.addresses[index].rpartition(":")[2] if known else "0"
        belongs = ("--pservers", str(self.pservers)) if index == 0 else ("--coordinator", self.addresses[0])
        return self._launch(
            f"pserver-{index}",
            *("--verbose", "pserver", "--index", str(index), "--port", port, *belongs),
            *("--snapshots", self.snapshots),
            *("--dead-after", str(self.dead_after_s), "--wait-for-members", str(self.wait_s)),
            *("--gather", str(self.gather_s)),
            *self._place_of(f"pserver-{index}"),
        )

    def start_trainer(self, name: str | None = None) -> Command:
        name = name or f"trainer-{len(self.everyone)}"
        settings = (
            f"runner.0.cluster.wait_for_members_s={self.wait_s}",
            f"runner.0.server_num={self.pservers}",
            *(["runner.0.cluster.token_file=token"] if self.island else []),
            *self.options,
        )
        overrides = [word for setting in settings for word in ("--set", setting)]
        trainer = self._launch(
            name,
            *("--verbose", "trainer", "-m", "config.yaml", "--coordinator", self.addresses[0]),
            *("--name", name, "--json", *overrides),
        )
        self.members.append(trainer)
        return trainer

    def kill(self, *killed: Command) -> None:
        """Kill processes, trainers for good, and wait until they are gone."""
        for each in killed:
            each.kill()
        for each in killed:
            each.wait()
        self.members = [each for each in self.members if each not in killed]

    def _launch(self, name: str, *arguments: str) -> Command:
        log = self.folder / f"{name}.{len(self.everyone)}.log"
        limit = self.file_bytes if name.startswith("pserver") else None
        is_away = self.island is not None and name in self.exiles
        namespace = self.island.path if self.island is not None and is_away else None
        command = start(
            self.folder,
            log,
            *arguments,
            file_bytes=limit,
            environment=self.environment,
            namespace=namespace,
        )
        self.everyone.append(command)
        return command

    def _place_of(self, name: str) -> list[str]:
        if self.island is None:
            return []
        (self.folder / "token").write_text(TOKEN)
        host = self.island.there if name in self.exiles else self.island.here
        return ["--host", host, "--token-file", "token"]

    # What is going on.

    def status(self) -> dict[str, Any] | None:
        """As the coordinator tells it; None while it cannot be reached."""
        try:
            link = Coordinator(
                wire_settings("admin", "test", token=TOKEN if self.island else None), self.addresses[0]
            )
            status: dict[str, Any] = link.ask("status")["status"]
        except WireError:
            return None
        return status

    def wait_until(self, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        """Wait for a state of the cluster; None where the run was over before."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            status = self.status()
            if status is not None and is_so(status):
                return status
            if not any(each.process.is_alive() for each in self.members):
                return None
            assert time.monotonic() < deadline, f"waited too long: {status}\n{self.words}"
            time.sleep(0.001)

    def wait_for_samples(self, samples: int) -> bool:
        """Wait until so many are trained; False where the run was over before."""
        return self.wait_until(lambda status: status["samples"] >= samples) is not None

    @property
    def committed(self) -> dict[str, Any]:
        """The commit file of the last snapshot."""
        content: dict[str, Any] = json.loads((self.folder / self.snapshots / "committed.json").read_text())[
            "content"
        ]
        return content

    @property
    def words(self) -> str:
        """Of all processes."""
        return "".join(f"--- {each.log.name}\n{each.words}" for each in self.everyone)

    # The end.

    def finish(self) -> dict[str, Any]:
        """Wait for the run to end by itself, well, on all that live; its summary."""
        summaries = []
        for trainer in self.members:
            assert trainer.wait() == 0, self.words
            summaries.append(summary_of(trainer))
        for server in self.servers:
            assert server.wait() == 0, self.words
        assert summaries, self.words
        assert all(each == summaries[0] for each in summaries[1:])
        return summaries[0]

    def assert_exact(self, summary: dict[str, Any], *, passes: int = 2, bad_lines: int = BAD_LINES) -> None:
        """Every sample was trained exactly once in every pass, by the ledger and by the metrics."""
        committed = self.committed
        assert committed["is_over"]
        history = committed["run"]["history"]
        assert [each["samples"] for each in history] == [SAMPLES] * passes
        assert [each["bad_lines"] for each in history] == [bad_lines] * passes
        assert [each["train"]["count"] for each in history] == [SAMPLES] * passes
        assert [each["validation"]["count"] for each in history] == [HELD_OUT] * passes
        assert committed["run"]["ledger"]["past_samples"] == SAMPLES * passes
        assert summary["samples"] == SAMPLES * passes


def name_of(command: Command) -> str:
    """What the coordinator calls it."""
    return command.log.name.partition(".")[0]


def summary_of(trainer: Command) -> dict[str, Any]:
    found = [line for line in trainer.words.splitlines() if line.startswith('{"run"')]
    summary: dict[str, Any] = json.loads(found[-1])
    del summary["seconds"]  # each has its own
    return summary


@contextlib.contextmanager
def fleet(folder: Path, pservers: int, trainers: int, *options: str, **settings: Any) -> Iterator[Fleet]:
    """A cluster that has been started; nothing of it is left when the block ends."""
    own = Fleet(folder, pservers, trainers, options, **settings)
    try:
        own.start()
        yield own
    finally:
        for each in own.everyone:
            each.kill(signal.SIGCONT)
            each.end()


def run_fleet(
    folder: Path, pservers: int, trainers: int, *options: str, **settings: Any
) -> tuple[Fleet, dict[str, Any]]:
    """A cluster that nothing happens to, to its end."""
    with fleet(folder, pservers, trainers, *options, **settings) as own:
        return own, own.finish()
