"""What `clickmill train` does with a runner: here, as a local cluster, or as one role of a larger one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.config.checks import run_problems
from clickmill.data.files import find_files
from clickmill.errors import ConfigError
from clickmill.launch.become import become, role_command
from clickmill.launch.local import LocalCluster
from clickmill.launch.mpi import read_rank
from clickmill.launch.ranks import RankRun
from clickmill.launch.roles import read_role
from clickmill.launch.seat import read_seat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clickmill.config import Config, RunnerConfig
    from clickmill.launch.mpi import Rank
    from clickmill.launch.role import Source
    from clickmill.launch.screen import Display
    from clickmill.train.collective.seat import Seat


@dataclass(frozen=True, slots=True)
class Launch:
    """One `clickmill train`."""

    config: Config
    source: Source
    """The same configuration as roles are to read it."""
    train_here: Callable[[RunnerConfig], list[Any]]
    """Runs a runner that needs no other process."""
    train_rank: Callable[[RunnerConfig, Seat], list[Any]]
    """Runs a collective runner as one of its ranks."""
    is_resumed: bool = False
    is_json: bool = False
    new_display: Callable[[], Display | None] = field(default=lambda: None)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def train(self) -> list[Any]:
        """Run all runners of `mode` in order; what they came to, as their trainers printed it.

        Empty where this process is one of several and another one tells. Does not return where it becomes a
        role. Raises ConfigError before the first starts where one of them cannot run, and DataError where the
        files of a cluster on this machine are not there.
        """
        problems = run_problems(self.config)
        if problems:
            raise ConfigError.of(problems)
        for runner in self.config.runners():
            if self._is_local_cluster(runner):
                self._find_data(runner)
        summaries: list[Any] = []
        for runner in self.config.runners():
            if not runner.is_cluster:
                summaries += self.train_here(runner)
                continue
            summary = self._train_cluster(runner)
            summaries += summary if isinstance(summary, list) else [] if summary is None else [summary]
        return summaries

    def _train_cluster(self, runner: RunnerConfig) -> Any:
        source = self.source.with_overrides(f"mode={json.dumps(runner.name)}")
        if self._is_local_cluster(runner):
            return LocalCluster(runner, source, self.new_display()).train(resume=self.is_resumed)
        if runner.class_name == "cluster_train":
            role = read_role(self.environ, is_collective=runner.is_collective)
            if role is not None:
                become(
                    role_command(
                        role, self.config, runner, source, resume=self.is_resumed, is_json=self.is_json
                    ),
                    role,
                )
            # torchrun and its like say no more than which rank this is.
            seat = read_seat(self.environ) if runner.is_collective else None
            if seat is not None:
                return self.train_rank(runner, seat)
        rank = read_rank(self.environ)
        if rank is None:
            raise self._without_role(runner)
        return self._train_rank(runner, source, rank)

    def _is_local_cluster(self, runner: RunnerConfig) -> bool:
        """Whether all processes of a runner are started by this one."""
        if not runner.is_cluster or runner.class_name == "cluster_train":
            return False
        rank = read_rank(self.environ)
        return rank is None or rank.size == 1

    def _find_data(self, runner: RunnerConfig) -> None:
        """Look for what the trainers will read: each of them would only find out when all is started."""
        names = {phase.dataset_name for phase in self.config.phases_of(runner)}
        if runner.evaluate_dataset_name:
            names.add(runner.evaluate_dataset_name)
        for dataset in self.config.dataset:
            if dataset.name in names:
                find_files(dataset.data_path, Path())
                if dataset.validation is not None:
                    find_files(dataset.validation.data_path, Path())

    def _train_rank(self, runner: RunnerConfig, source: Source, rank: Rank) -> Any:
        return RankRun(self.config, runner, source, rank).train(resume=self.is_resumed)

    def _without_role(self, runner: RunnerConfig) -> ConfigError:
        message = (
            "`cluster_train` is one process of a cluster, but the environment gives this one no role: "
            "CLICKMILL_ROLE, PADDLE_TRAINING_ROLE and TRAINING_ROLE are not set, "
            f"{'nor is RANK, ' if runner.is_collective else ''}and no mpirun started it"
        )
        place = ("runner", self.config.runner.index(runner), "class")
        return ConfigError.of(
            [self.config.problem(message, place)],
            hint="to start a whole cluster on this machine, use `class: local_cluster_train`",
        )
