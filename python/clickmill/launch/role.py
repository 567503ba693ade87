"""How the process of a role is started: the one place that knows the arguments of `pserver` and `trainer`.

A role speaks to whoever started it in JSON lines on stdout:

    {"role": "pserver", "index": 0, "address": "127.0.0.1:41233", "metrics": "127.0.0.1:41234"}   it listens
    {"progress": {...}}                                       what it has done, if CLICKMILL_PROGRESS is set
    anything else                                             the summary of the run, printed at its end

Its words are on stderr; with `--json` its last words are an error as JSON, if it fails.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickmill.config.cluster import ClusterConfig
    from clickmill.launch.address import Address

PROGRESS_VARIABLE = "CLICKMILL_PROGRESS"
"""Set: the role tells its progress on stdout."""
OWN_LOG_VARIABLE = "CLICKMILL_OWN_LOG"
"""Set: the words of the role are in a log of their own, in which every trainer tells how the run goes. Where
several share a terminal, one of them tells for all."""

CLICKMILL = (sys.executable, "-m", "clickmill")
"""This command, whatever it was called as."""


@dataclass(frozen=True, slots=True)
class RoleCommand:
    """A process to start."""

    name: str
    """`trainer 0`: prefix of its lines; `trainer-0.log` is its log."""
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What is added to the environment."""
    is_tethered: bool = False
    """It runs behind a tether, elsewhere or here: it lives as long as its stdin speaks, and ends when that
    closes."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """How the processes of a run trust each other; a token is never an argument."""

    token_file: str | None = None
    is_insecure: bool = False

    @property
    def arguments(self) -> list[str]:
        found = [] if self.token_file is None else ["--token-file", self.token_file]
        return [*found, "--insecure"] if self.is_insecure else found


@dataclass(frozen=True, slots=True)
class Source:
    """The configuration as a role is to read it."""

    model: str
    """What `-m` is given."""
    overrides: tuple[str, ...] = ()
    """What `--set` is given, once for each."""
    talk: tuple[str, ...] = ()
    """`--verbose` or `--quiet`."""

    def with_overrides(self, *overrides: str) -> Source:
        """With more of them; the last one of a key counts."""
        return Source(self.model, (*self.overrides, *overrides), self.talk)

    @property
    def arguments(self) -> list[str]:
        sets = [word for override in self.overrides for word in ("--set", override)]
        return ["-m", self.model, *sets]


def pserver_command(
    index: int | None,
    listen: Address,
    *,
    pservers: int,
    coordinator: Address | None,
    snapshots: str,
    secrets: Secrets,
    cluster: ClusterConfig,
    announced: Address | None = None,
    metrics_port: int = 0,
    talk: Sequence[str] = (),
    is_json: bool = True,
    clickmill: Sequence[str] | None = None,
) -> RoleCommand:
    """Parameter server `index`; number 0 is the coordinator and needs to be told of none.

    One without a number takes the place of one that is missing, or waits as a spare.
    """
    argv = [*(clickmill or CLICKMILL), *talk, "pserver", "--host", listen.host, "--port", str(listen.port)]
    if announced is not None:
        argv += ["--announce", str(announced)]
    if index is not None:
        argv += ["--index", str(index)]
    argv += ["--snapshots", snapshots]
    if index != 0:
        assert coordinator is not None
        argv += ["--coordinator", str(coordinator)]
    else:
        argv += ["--pservers", str(pservers)]
    argv += ["--dead-after", f"{cluster.dead_after_s:g}"]
    argv += ["--wait-for-members", f"{cluster.wait_for_members_s:g}", "--gather", f"{cluster.gather_s:g}"]
    if cluster.memory_budget:
        argv += ["--memory-budget", cluster.memory_budget]
    if cluster.tls is not None:
        tls = cluster.tls
        argv += ["--tls-certificate", tls.certificate, "--tls-key", tls.key]
        argv += ["--tls-authority", tls.authority, "--tls-server-name", tls.server_name]
    if metrics_port:
        argv += ["--metrics-port", str(metrics_port)]
    name = "pserver" if index is None else f"pserver {index}"
    return RoleCommand(name, (*argv, *secrets.arguments, *_json(is_json)))


def trainer_command(
    index: int | None,
    source: Source,
    *,
    coordinator: Address,
    secrets: Secrets,
    metrics_port: int = 0,
    metrics_host: str = "",
    is_json: bool = True,
    clickmill: Sequence[str] | None = None,
) -> RoleCommand:
    """A trainer of a parameter-server run; its number is for people, the coordinator gives it another."""
    argv = [
        *(clickmill or CLICKMILL),
        *source.talk,
        "trainer",
        *source.arguments,
        "--coordinator",
        str(coordinator),
    ]
    if metrics_port:
        argv += ["--metrics-port", str(metrics_port)]
        argv += ["--metrics-host", metrics_host] if metrics_host else []
    if index is not None:
        argv += ["--name", f"trainer {index}"]
    argv += [*secrets.arguments, *_json(is_json)]
    name = "trainer" if index is None else f"trainer {index}"
    return RoleCommand(name, tuple(argv))


def worker_command(
    rank: int,
    world_size: int,
    source: Source,
    *,
    meeting: Address,
    local_rank: int,
    resume: bool = False,
    is_json: bool = True,
    clickmill: Sequence[str] | None = None,
) -> RoleCommand:
    """A rank of a collective run; its place is in the variables that torch.distributed reads."""
    env = {
        "RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_RANK": str(local_rank),
        "MASTER_ADDR": meeting.host,
        "MASTER_PORT": str(meeting.port),
    }
    argv = [*(clickmill or CLICKMILL), *source.talk, "trainer", *source.arguments]
    if resume:
        argv.append("--resume")
    return RoleCommand(f"worker {rank}", (*argv, *_json(is_json)), env)


def _json(is_json: bool) -> list[str]:
    return ["--json"] if is_json else []
