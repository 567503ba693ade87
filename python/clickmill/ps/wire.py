"""How a process of a cluster speaks to the others: secrets, encryption, deadlines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clickmill.errors import ConfigError
from clickmill.store.secret_file import read_secret_file

if TYPE_CHECKING:
    from clickmill.config.runner import RunnerConfig

TOKEN_VARIABLE = "CLICKMILL_TOKEN"

Role = Literal["pserver", "trainer", "admin"]


def read_token(token_file: str) -> str | None:
    """The secret of the cluster: from the file, else from the environment, else none."""
    if not token_file:
        return os.environ.get(TOKEN_VARIABLE) or None
    found = read_secret_file(Path(token_file))
    if found.problem:
        raise ConfigError(f"the token file `{token_file}` {found.problem}")
    return found.text


def wire_settings(
    role: Role, name: str, *, token: str | None, runner: RunnerConfig | None = None
) -> dict[str, Any]:
    """Settings for the native side of the wire; those of a trainer come with its runner."""
    settings: dict[str, Any] = {"role": role, "name": name, "token": token, "deadline_ms": 180_000}
    if runner is None:
        return settings
    cluster, communicator = runner.cluster, runner.communicator
    precision = cluster.wire_precision
    settings.update(
        tls=None if cluster.tls is None else cluster.tls.model_dump(),
        precision=runner.precision if precision == "auto" else precision,
        deadline_ms=communicator.rpc_deadline,
        retries=communicator.rpc_retry_times,
        num_threads=communicator.thread_pool_size,
        shared_memory=cluster.shared_memory,
    )
    return settings


def settings_json(settings: dict[str, Any]) -> str:
    """As the native side takes them."""
    return json.dumps({key: value for key, value in settings.items() if value is not None})
