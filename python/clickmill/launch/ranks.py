"""The part of one rank of an MPI job: one role, under a supervisor of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.errors import ConfigError
from clickmill.launch.address import Address
from clickmill.launch.local import LOGS, SNAPSHOTS, free_port
from clickmill.launch.member import Member
from clickmill.launch.mpi import Rank, own_host
from clickmill.launch.rendezvous import Rendezvous
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config import Config, RunnerConfig


@dataclass(frozen=True, slots=True)
class RankRun:
    """What one rank runs of a runner."""

    config: Config
    runner: RunnerConfig
    source: Source
    rank: Rank

    def train(self, *, resume: bool = False) -> Any:
        """Run to the end; the summary on the first trainer, None on all other ranks.

        Without `resume` the first rank removes the snapshots of an earlier run.
        """
        if self.rank.rank == 0 and not resume:
            shutil.rmtree(Path(self.runner.run_folder) / SNAPSHOTS, ignore_errors=True)
        if self.runner.is_collective:
            return self._train_collective(resume=resume)
        if self.rank.size <= self.runner.server_num:
            raise ConfigError(
                f"{self.rank.size} ranks are too few for {self.runner.server_num} servers and a trainer",
                hint=f"start {self.runner.server_num + 1} or more, or lower `server_num`",
            )
        if self.rank.rank == 0:
            with self._opened():
                return self._supervise(self._serve_first)
        meeting = self.rendezvous.wait(self.runner.cluster.wait_for_members_s)
        if self.rank.rank < self.runner.server_num:
            return self._supervise(lambda supervisor: self._serve(supervisor, meeting))
        index = self.rank.rank - self.runner.server_num
        command = trainer_command(index, self._sized(), coordinator=meeting, secrets=self._secrets)
        summary = self._supervise(lambda supervisor: _follow(supervisor, command))
        return summary if index == 0 else None

    @property
    def rendezvous(self) -> Rendezvous:
        return Rendezvous(Path(self.runner.run_folder), self.rank.job)

    @property
    def _secrets(self) -> Secrets:
        return Secrets(self.runner.cluster.token_file or str(self.rendezvous.token_file))

    def _sized(self) -> Source:
        """As many workers as there are ranks for, where the file does not say."""
        if "worker_num" in self.runner.model_fields_set:
            return self.source
        number = self.rank.size - (0 if self.runner.is_collective else self.runner.server_num)
        place = self.config.runner.index(self.runner)
        return self.source.with_overrides(f"runner.{place}.worker_num={number}")

    def _train_collective(self, *, resume: bool) -> Any:
        rank = self.rank
        with self._opened() if rank.rank == 0 else contextlib.nullcontext():
            if rank.rank == 0:
                meeting = Address(own_host(rank, os.environ), free_port())
                self.rendezvous.announce(meeting)
            else:
                # Nobody listens there before rank 0 has imported torch.
                meeting = self.rendezvous.wait(self.runner.cluster.wait_for_members_s, until_open=False)
            command = worker_command(
                rank.rank,
                rank.size,
                self._sized(),
                meeting=meeting,
                local_rank=rank.local_rank,
                resume=resume,
            )
            summary = self._supervise(lambda supervisor: _follow(supervisor, command), max_restarts=0)
        return summary if rank.rank == 0 else None

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        self.rendezvous.open()
        try:
            yield
        finally:
            self.rendezvous.close()

    async def _serve_first(self, supervisor: Supervisor) -> Any:
        self.rendezvous.announce(await supervisor.start_server(self._server(None)))
        return await supervisor.finish()

    async def _serve(self, supervisor: Supervisor, meeting: Address) -> Any:
        await supervisor.start_server(self._server(meeting))
        return await supervisor.finish()

    def _server(self, coordinator: Address | None) -> Member:
        index, folder = self.rank.rank, Path(self.runner.run_folder)
        listen = Address(own_host(self.rank, os.environ), 0)

        def command(before: Address | None) -> RoleCommand:
            return pserver_command(
                index,
                before or listen,
                coordinator=coordinator,
                snapshots=str(folder / SNAPSHOTS),
                secrets=self._secrets,
                pservers=self.runner.server_num,
                cluster=self.runner.cluster,
                talk=self.source.talk,
            )

        return Member(f"pserver {index}", "server", command)

    def _supervise(self, body: Any, *, max_restarts: int | None = None) -> Any:
        cluster = self.runner.cluster
        policy = Policy(
            max_restarts=cluster.max_restarts if max_restarts is None else max_restarts,
            start_deadline_s=cluster.wait_for_members_s,
        )
        screen = Screen([f"trainer {self.rank.size - 1}"])
        return supervise(body, screen=screen, logs=Path(self.runner.run_folder) / LOGS, policy=policy)


async def _follow(supervisor: Supervisor, command: RoleCommand) -> Any:
    supervisor.start_trainer(Member(command.name, "trainer", lambda _before: command))
    return await supervisor.finish()
