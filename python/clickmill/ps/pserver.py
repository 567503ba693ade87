"""A parameter server as a process: listens, tells what happens, and ends when the run is over."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill import _core
from clickmill.errors import ConfigError, StorageError
from clickmill.monitoring import Monitoring
from clickmill.ps.health import tell_health
from clickmill.ps.verdict import verdict
from clickmill.ps.wire import wire_settings
from clickmill.store.durable import is_full

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

logger = logging.getLogger("clickmill.ps")

_LOOK_S = 0.2
_WRONG_SETTINGS = 2
"""Exit code of a server that cannot take part; any other but 0 is that of a run that has failed."""


@dataclass(frozen=True)
class PserverOptions:
    """Where a server listens and what it belongs to."""

    host: str
    port: int
    announced: str | None
    index: int | None
    pservers: int
    coordinator: str | None
    """None: this server is the first, and the coordinator is in it."""
    snapshots: Path
    token: str | None
    tls: dict[str, str] | None
    is_insecure: bool
    memory_budget: int | None
    dead_after_s: float
    wait_for_members_s: float
    gather_s: float
    metrics_port: int | None = None
    """None: nobody scrapes it; 0: any port."""


def serve(options: PserverOptions, listening: Callable[[str, str | None], None]) -> str:
    """Serve until the run is over; the coordinator's last words. Raises what it ended with, if badly."""
    # Frames are large, and of about the same size again and again.
    _core.keep_freed_memory()
    monitoring = None
    if options.metrics_port is not None:
        monitoring = Monitoring(
            f"{options.host}:{options.metrics_port}", token=options.token, is_insecure=options.is_insecure
        )
    try:
        _make_folder(options.snapshots)
        server = _core.Pserver(json.dumps(_settings(options)))
        if monitoring is not None:
            monitoring.tell_cluster(server)
        try:
            listening(server.address, None if monitoring is None else monitoring.address)
            outcome = _serve(server, monitoring)
        finally:
            server.stop()
    finally:
        if monitoring is not None:
            monitoring.close()
    exit_code, words = outcome
    if exit_code == _WRONG_SETTINGS:
        hint = "give all processes of the cluster the same token, and TLS to all of them or to none"
        raise ConfigError(words, hint=hint)
    if exit_code != 0:
        raise verdict(exit_code, words)
    return words


def _make_folder(snapshots: Path) -> None:
    """A folder that can never be is an error now, not after a long wait; a disk may still be made room on."""
    try:
        snapshots.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if is_full(error):
            return
        raise StorageError(
            f"cannot make folder `{snapshots}` for snapshots: {error.strerror}",
            hint="give `--snapshots` a folder that all servers can write to",
        ) from error


def _serve(server: _core.Pserver, monitoring: Monitoring | None) -> tuple[int, str]:
    while True:
        outcome = server.wait(_LOOK_S)
        for text in server.happenings():
            _tell(json.loads(text))
        if monitoring is not None:
            tell_health(monitoring, json.loads(server.health()))
        if outcome is not None:
            return outcome


def _settings(options: PserverOptions) -> dict[str, Any]:
    wire = wire_settings("pserver", "pserver", token=options.token)
    wire["tls"] = options.tls
    return {
        "address": f"{options.host}:{options.port}",
        "announced": options.announced,
        "is_insecure": options.is_insecure,
        "index": 0 if options.coordinator is None else options.index,
        "coordinator": options.coordinator,
        "snapshots": str(options.snapshots),
        "memory_budget": options.memory_budget,
        "servers": options.pservers,
        "dead_after_s": options.dead_after_s,
        # A process that is started again at once should find its place waiting for it.
        "closed_after_s": min(2.0, options.dead_after_s),
        "wait_for_members_s": options.wait_for_members_s,
        "gather_s": options.gather_s,
        "wire": wire,
    }


def _tell(event: dict[str, Any]) -> None:
    kind = event.pop("kind")
    words = " ".join(f"{key}={value}" for key, value in event.items())
    is_memory = kind.startswith("memory_")
    is_own = is_memory or kind == "placed"
    is_bad = kind.endswith(("_lost", "_failed", "_gone")) and event.get("reason") != "it has left"
    level = logging.WARNING if is_bad or is_memory else logging.INFO
    logger.log(level, "%s.%s %s", "pserver" if is_own else "coordinator", kind, words)
