"""`class: cluster_train`: this process becomes the role that its environment gives it."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from clickmill.launch.local import SNAPSHOTS
from clickmill.launch.role import (
    RoleCommand,
    Secrets,
    Source,
    pserver_command,
    trainer_command,
    worker_command,
)
from clickmill.launch.seat import local_rank

if TYPE_CHECKING:
    from clickmill.config import Config, RunnerConfig
    from clickmill.launch.roles import Role

logger = logging.getLogger(__name__)


def role_command(
    role: Role,
    config: Config,
    runner: RunnerConfig,
    source: Source,
    *,
    resume: bool = False,
    is_json: bool,
) -> RoleCommand:
    """The command of a role, with what the environment says about training as overrides.

    With `resume` a collective worker goes on from the newest checkpoint; servers do so from their snapshots.
    """
    source = source.with_overrides(*role_overrides(role, config, runner))
    secrets = Secrets(role.token_file or _file_of(runner, role), role.is_insecure)
    if role.workers:
        assert role.index is not None
        return worker_command(
            role.index,
            len(role.workers),
            source,
            meeting=role.workers[0],
            local_rank=local_rank(role),
            resume=resume,
            is_json=is_json,
        )
    if role.kind == "pserver":
        assert role.address is not None
        return pserver_command(
            role.index,
            role.address,
            coordinator=role.coordinator,
            snapshots=role.snapshots or str(Path(runner.run_folder) / SNAPSHOTS),
            secrets=secrets,
            pservers=role.num_pservers or runner.server_num,
            cluster=runner.cluster,
            announced=role.announced,
            metrics_port=role.metrics_port,
            talk=source.talk,
            is_json=is_json,
        )
    assert role.coordinator is not None
    return trainer_command(
        role.index,
        source,
        coordinator=role.coordinator,
        secrets=secrets,
        metrics_port=role.metrics_port,
        metrics_host=role.metrics_host,
        is_json=is_json,
    )


def role_overrides(role: Role, config: Config, runner: RunnerConfig) -> list[str]:
    """What the job that started this process knows better than the file: numbers, threads, knobs."""
    place = f"runner.{config.runner.index(runner)}"
    overrides = [f"{place}.communicator.{key}={value}" for key, value in sorted(role.communicator.items())]
    if role.num_trainers is not None:
        overrides.append(f"{place}.worker_num={role.num_trainers}")
    if role.num_pservers is not None:
        overrides.append(f"{place}.server_num={role.num_pservers}")
    if role.gpus is not None:
        overrides.append(f"{place}.selected_gpus='{role.gpus}'")
    if role.num_threads is not None:
        phases = config.phases_of(runner)
        overrides += [f"phase.{config.phase.index(each)}.thread_num={role.num_threads}" for each in phases]
    return overrides


def become(command: RoleCommand, role: Role) -> NoReturn:
    """Run the command in place of this process: same number, same parent, same signals."""
    if role.ignored:
        logger.warning("variables without a meaning here: %s", ", ".join(role.ignored))
    logger.info("role.started role=%s job=%s pod=%s", role.name, role.job or "-", role.pod or "-")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command.argv[0], command.argv, {**os.environ, **command.env})


def _file_of(runner: RunnerConfig, role: Role) -> str | None:
    """The token of the file, unless the environment holds the token itself, which roles read."""
    return None if role.token else runner.cluster.token_file or None
