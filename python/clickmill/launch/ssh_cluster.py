"""`clickmill ssh-cluster`: a run on hosts that are reached with ssh.

On every host a folder for the job, in it a copy of the package, `nodefile` with the number of the host, and
`log/server.log` and `log/train.log`; a parameter server and a trainer. Logs are fetched at the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tarfile
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.config.cluster import ClusterConfig
from clickmill.errors import ClickmillError, ConfigError
from clickmill.launch.address import Address
from clickmill.launch.flags import flag_overrides
from clickmill.launch.local import SNAPSHOTS
from clickmill.launch.member import Member
from clickmill.launch.role import (
    PROGRESS_VARIABLE,
    RoleCommand,
    Secrets,
    Source,
    pserver_command,
    trainer_command,
    worker_command,
)
from clickmill.launch.screen import Screen
from clickmill.launch.ssh import Host, in_folder, quote_path
from clickmill.launch.supervisor import Policy, Supervisor, supervise
from clickmill.launch.token import new_token
from clickmill.store.durable import replace_file, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from clickmill.launch.hosts import HostsConfig
    from clickmill.launch.screen import Display


def job_name() -> str:
    """By the time: `JOB20261115231500`."""
    return f"JOB{datetime.now():%Y%m%d%H%M%S}"


SERVER_LOG, TRAIN_LOG = "log/server.log", "log/train.log"
_TOKEN = "token"
_LEFT_OUT = frozenset({".git", "__pycache__", ".venv"})
_FREE_PORT = "'import socket; s = socket.create_server((\"\", 0)); print(s.getsockname()[1])'"
"""Program that prints a port that nobody has on its host."""
_FETCH_DEADLINE_S = 60.0
_DEADLINE_S = 600.0


@dataclass(slots=True)
class SshCluster:
    """One job; `package` is copied to the hosts, or `workspace` is there already."""

    hosts: HostsConfig
    source: Source
    """`model` is a path in the package or the workspace."""
    output: Path
    """Folder here for the logs of the job."""
    package: Path | None = None
    workspace: str | None = None
    extra: Sequence[str] = ()
    """Arguments for the trainers, as they are."""
    new_display: Callable[[], Display | None] = field(default=lambda: None)
    max_restarts: int = 3
    job: str = field(default_factory=job_name)
    _members: list[Host] = field(default_factory=list)
    _cluster: ClusterConfig = field(default_factory=ClusterConfig)
    _snapshots: str = SNAPSHOTS

    def train(self) -> dict[str, Any]:
        """Run to the end: folder of the job, hosts, logs, and the summary of the run."""
        last = len(self.hosts.hosts) - 1
        policy = Policy(max_restarts=self.max_restarts, start_deadline_s=_DEADLINE_S)
        with tempfile.TemporaryDirectory(prefix="clickmill-ssh-") as control:
            self._members = [Host(self.hosts, index, Path(control)) for index in range(last + 1)]
            summary = supervise(
                self._run,
                screen=Screen([f"pserver {last}", f"trainer {last}"], display=self.new_display()),
                logs=self.output,
                policy=policy,
                at_end=self._clean_up,
            )
        return {
            "job": self.folder,
            "hosts": [host.name for host in self._members],
            "logs": str(self.output),
            "summary": summary,
        }

    @property
    def folder(self) -> str:
        """Folder of the job on the hosts."""
        return self.workspace if self.workspace is not None else f"{self.hosts.root_dir}/{self.job}"

    async def _run(self, supervisor: Supervisor) -> Any:
        await asyncio.gather(*(host.connect() for host in self._members))
        await asyncio.gather(*(self._check(host) for host in self._members))
        await self._prepare()
        source, is_collective = await self._read_config()
        if is_collective:
            return await self._train_collective(supervisor, source)
        secrets = Secrets(_TOKEN)
        coordinator = await supervisor.start_server(self._server(self._members[0], None, secrets))
        others = [self._server(host, coordinator, secrets) for host in self._members[1:]]
        await supervisor.start_servers(others)
        for host in self._members:
            command = trainer_command(
                host.index,
                source,
                coordinator=coordinator,
                secrets=secrets,
                clickmill=self._clickmill,
            )
            supervisor.start_trainer(self._trainer(host, command))
        return await supervisor.finish()

    async def _train_collective(self, supervisor: Supervisor, source: Source) -> Any:
        first = self._members[0]
        port = self.hosts.port or int(await first.run(f"{quote_path(self.hosts.python)} -c {_FREE_PORT}"))
        meeting = Address(first.name, port)
        for host in self._members:
            command = worker_command(
                host.index,
                len(self._members),
                source,
                meeting=meeting,
                local_rank=0,
                clickmill=self._clickmill,
            )
            # A rank that has died ends the run for all; they go on from a checkpoint.
            supervisor.start_trainer(self._trainer(host, command, can_come_back=False))
        return await supervisor.finish()

    @property
    def _clickmill(self) -> tuple[str, ...]:
        return (self.hosts.python, "-m", "clickmill")

    def _server(self, host: Host, coordinator: Address | None, secrets: Secrets) -> Member:
        def command(before: Address | None) -> RoleCommand:
            role = pserver_command(
                host.index,
                before or Address(host.name, self.hosts.port),
                coordinator=coordinator,
                snapshots=self._snapshots,
                secrets=secrets,
                pservers=len(self._members),
                cluster=self._cluster,
                talk=self.source.talk,
                clickmill=self._clickmill,
            )
            return self._on(host, role, SERVER_LOG)

        return Member(f"pserver {host.index}", "server", command)

    def _trainer(self, host: Host, role: RoleCommand, *, can_come_back: bool = True) -> Member:
        there = self._on(host, role, TRAIN_LOG)
        return Member(role.name, "trainer", lambda _before: there, can_come_back=can_come_back)

    def _on(self, host: Host, role: RoleCommand, log: str) -> RoleCommand:
        """The same role on a host, tied to this process by a tether."""
        tether = (self.hosts.python, "-m", "clickmill.launch.tether", "--log", log, "--", *role.argv)
        environment = {
            "PYTHONUNBUFFERED": "1",
            PROGRESS_VARIABLE: "1",
            **role.env,
            **self.hosts.environment,
        }
        argv = host.argv(in_folder(self.folder, environment, tether))
        return RoleCommand(role.name, argv, is_tethered=True)

    async def _check(self, host: Host) -> None:
        """What the job needs on a host, before anything is made there. Raises ConfigError."""
        if self.workspace is not None and await host.run(f"test -d {quote_path(self.workspace)} || echo no"):
            raise ConfigError(
                f"`{host.name}` has no folder `{self.workspace}`",
                hint="a workspace is on all hosts already; without `ssh.workspace` (`-j`) files are copied",
            )
        python = self.hosts.python
        if self.workspace is None and "/" in python and not python.startswith(("/", "~")):
            return  # it comes with the package
        # In the way in which processes of the job are started.
        command = in_folder(self.workspace or ".", self.hosts.environment, (python, "-c", "import clickmill"))
        words = await host.run(f"({command}) 2>&1; echo $?")
        *said, code = words.decode(errors="replace").split("\n")[:-1]
        if code != "0":
            raise ConfigError(
                f"`{host.name}`: `python: {python}` does not run clickmill: {said[-1] if said else code}",
                hint="install clickmill there, or name the Python that has it as `python` in hosts.yaml",
            )

    async def _prepare(self) -> None:
        """Folder, package, number and token on every host."""
        token = f"{new_token()}\n".encode()
        with contextlib.ExitStack() as stack:
            archive = stack.enter_context(_archive(self.package)) if self.package is not None else None

            async def prepare(host: Host) -> None:
                folder = quote_path(self.folder)
                make = "" if self.workspace is not None else f"mkdir -p {folder} && "
                clear = f"mkdir -p log && rm -f {SERVER_LOG} {TRAIN_LOG}"
                steps = f"{make}cd {folder} && {clear} && echo {host.index} > nodefile"
                if archive is None:
                    await host.run(steps)
                else:
                    with archive.open("rb") as content:
                        await host.run(f"{steps} && tar -xzf -", stdin=content)
                await host.run(f"umask 077 && cat > {quote_path(f'{self.folder}/{_TOKEN}')}", stdin=token)

            await asyncio.gather(*(prepare(host) for host in self._members))

    async def _read_config(self) -> tuple[Source, bool]:
        """The configuration as the first host reads it: checked there, where the files are."""
        first = self._members[0]
        argv = [*self._clickmill, "config", "show", *self.source.arguments, "--json"]
        command = in_folder(self.folder, self.hosts.environment, argv)
        try:
            config = json.loads(await first.run(command))
        except ValueError as error:
            raise ConfigError(f"`{first.name}` does not show the configuration: {error}") from error
        named = [config["mode"]] if isinstance(config["mode"], str) else config["mode"]
        chosen = [(index, each) for index, each in enumerate(config["runner"]) if each["name"] in named]
        if len(chosen) != 1 or chosen[0][1]["class"] not in {"cluster_train", "local_cluster_train"}:
            raise ConfigError(
                f"`mode` names {', '.join(named)}; an ssh cluster runs one runner, of class `cluster_train`",
                hint="choose it with `--set mode=NAME`",
            )
        index, runner = chosen[0]
        self._cluster = ClusterConfig.model_validate(runner["cluster"])
        folder = runner["output_path"] or f"runs/{runner['name']}"
        self._snapshots = f"{folder}/{SNAPSHOTS}"
        number = len(self._members)
        phases = [each["name"] for each in config["phase"]]
        phase = phases.index(runner["phases"][0]) if runner["phases"] else 0
        source = self.source.with_overrides(
            *flag_overrides(self.extra, index, phase),
            f"runner.{index}.worker_num={number}",
            f"runner.{index}.server_num={number}",
        )
        return source, runner["fleet_mode"] == "collective"

    async def _clean_up(self) -> None:
        """Logs are fetched, the token is removed, connections are closed; what cannot be done is left."""
        try:
            await asyncio.wait_for(
                asyncio.gather(*(self._leave(host) for host in self._members)), _FETCH_DEADLINE_S
            )
        except TimeoutError:
            pass  # a host that does not answer any more; what it said until then is here
        finally:
            await asyncio.gather(*(host.close() for host in self._members))

    async def _leave(self, host: Host) -> None:
        with contextlib.suppress(ClickmillError):  # it may never have been reached
            await host.run(f"rm -f {quote_path(f'{self.folder}/{_TOKEN}')}")
            for log in (SERVER_LOG, TRAIN_LOG):
                path = quote_path(f"{self.folder}/{log}")
                content = await host.run(f"cat {path} 2>/dev/null || true")
                if content:
                    replace_file(self.output / f"node-{host.index}" / Path(log).name, content)


@contextlib.contextmanager
def _archive(package: Path) -> Iterator[Path]:
    """The package as one file, to be read by every host's copy."""
    with tempfile.NamedTemporaryFile(prefix="clickmill-", suffix=".tar.gz") as file:
        try:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1, dereference=True) as archive:
                archive.add(package, arcname=".", filter=_packed)
            file.flush()
        except OSError as error:
            if error.filename is not None:
                raise  # a file of the package that cannot be read
            with writing(Path(file.name)):
                raise
        yield Path(file.name)


def _packed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(member.name).name in _LEFT_OUT else member
