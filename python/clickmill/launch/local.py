"""`class: local_cluster_train`: all processes of a run on this machine, started by one command."""

from __future__ import annotations

import contextlib
import shutil
import socket
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.launch.address import Address
from clickmill.launch.member import Member
from clickmill.launch.role import (
    RoleCommand,
    Secrets,
    Source,
    pserver_command,
    trainer_command,
    worker_command,
)
from clickmill.launch.screen import Screen
from clickmill.launch.supervisor import Policy, Supervisor, supervise
from clickmill.launch.token import FILE_NAME as TOKEN_FILE_NAME
from clickmill.launch.token import new_token, write_token
from clickmill.store.lock import only_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config import RunnerConfig
    from clickmill.launch.screen import Display

HOST = "127.0.0.1"
LOGS = "logs"
SNAPSHOTS = "snapshots"


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """One run of a runner of class `local_cluster_train`."""

    runner: RunnerConfig
    source: Source
    """What trainers read; `mode` names this runner alone."""
    display: Display | None = None

    @property
    def folder(self) -> Path:
        return Path(self.runner.run_folder)

    def train(self, *, resume: bool = False) -> Any:
        """Run to the end; the summary. Without `resume` snapshots of an earlier run are removed."""
        with only_writer(self.folder / LOGS):
            if not resume and (self.folder / SNAPSHOTS).exists():
                shutil.rmtree(self.folder / SNAPSHOTS)
            if self.runner.is_collective:
                body = partial(self._train_collective, resume=resume)
                return self._supervise("worker", body, max_restarts=0)
            with self._secrets() as secrets:
                return self._supervise("trainer", partial(self._train, secrets=secrets))

    def _supervise(self, trainers: str, body: Any, *, max_restarts: int | None = None) -> Any:
        cluster = self.runner.cluster
        policy = Policy(
            max_restarts=cluster.max_restarts if max_restarts is None else max_restarts,
            start_deadline_s=cluster.wait_for_members_s,
        )
        number = self.runner.num_ranks if self.runner.is_collective else self.runner.worker_num
        names = [f"{trainers} {number - 1}", f"pserver {self.runner.server_num - 1}"]
        screen = Screen(names, display=self.display)
        return supervise(body, screen=screen, logs=self.folder / LOGS, policy=policy)

    async def _train(self, supervisor: Supervisor, *, secrets: Secrets) -> Any:
        coordinator = await supervisor.start_server(self._server(0, None, secrets))
        others = [self._server(index, coordinator, secrets) for index in range(1, self.runner.server_num)]
        await supervisor.start_servers(others)
        for index in range(self.runner.worker_num):
            command = trainer_command(index, self.source, coordinator=coordinator, secrets=secrets)
            supervisor.start_trainer(Member(command.name, "trainer", _always(command)))
        return await supervisor.finish()

    async def _train_collective(self, supervisor: Supervisor, *, resume: bool) -> Any:
        size, meeting = self.runner.num_ranks, Address(HOST, free_port())
        for rank in range(size):
            command = worker_command(rank, size, self.source, meeting=meeting, local_rank=rank, resume=resume)
            supervisor.start_trainer(Member(command.name, "trainer", _always(command)))
        return await supervisor.finish()

    def _server(self, index: int, coordinator: Address | None, secrets: Secrets) -> Member:
        def command(before: Address | None) -> RoleCommand:
            return pserver_command(
                index,
                before or Address(HOST, 0),
                coordinator=coordinator,
                snapshots=str(self.folder / SNAPSHOTS),
                secrets=secrets,
                pservers=self.runner.server_num,
                cluster=self.runner.cluster,
                talk=self.source.talk,
            )

        return Member(f"pserver {index}", "server", command)

    @contextlib.contextmanager
    def _secrets(self) -> Iterator[Secrets]:
        """The user's token, or one for this run alone."""
        if self.runner.cluster.token_file:
            yield Secrets(self.runner.cluster.token_file)
            return
        path = self.folder / TOKEN_FILE_NAME
        write_token(path, new_token())
        try:
            yield Secrets(str(path))
        finally:
            path.unlink(missing_ok=True)


def _always(command: RoleCommand) -> Any:
    return lambda _before: command


def free_port() -> int:
    """A port that nobody has now; rank 0 takes it a moment later."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
