"""Jobs on hosts that are reached with ssh: the package is made here, `launch.ssh_cluster` does the rest."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.launch.hosts import load_hosts
from clickmill.launch.ssh_cluster import SshCluster, job_name
from clickmill.submit.commands import class_overrides, communicator_overrides
from clickmill.submit.file_system import FS_NAME
from clickmill.submit.package import collect_package, config_name
from clickmill.submit.request import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickmill.launch.hosts import HostsConfig
    from clickmill.launch.role import Source
    from clickmill.launch.screen import Display
    from clickmill.submit.request import Request

PACKAGE = "PACKAGE"
"""What is copied has no name that stays: it is made, and gone again when the job has ended."""


def read_hosts(request: Request) -> HostsConfig:
    """The machines. Raises ConfigError with every problem of the file.

    Processes there know the file system of the job; a secret is no variable of theirs, for it would be an
    argument of ssh.
    """
    try:
        hosts = load_hosts(_hosts_file(request))
    except ConfigError as error:
        if error.problems:
            raise
        hint = "list the machines there, as `hosts: [user@host]`; docs/guides/clusters.md has an example"
        problem = request.backend.problem(str(error), ("ssh", "hosts_file"))
        raise ConfigError.of([problem], hint=hint) from error
    variables = {FS_NAME: request.backend.config.fs_name} if request.backend.config.fs_name else {}
    return hosts.model_copy(update={"environment": {**variables, **hosts.environment}})


def plan(request: Request) -> Outcome:
    """What would be done: hosts, files, and the command that does the same with a folder of these files."""
    hosts, ssh, source = read_hosts(request), request.backend.ssh, _source(request)
    files = [] if ssh.workspace else [file.name for file in collect_package(request.config, request.backend)]
    command = ["clickmill", "ssh-cluster", "--hosts", str(_hosts_file(request))]
    command += ["-j", ssh.workspace] if ssh.workspace else ["-p", PACKAGE]
    facts = {
        "backend": "SSH",
        "hosts": list(hosts.hosts),
        "files": files,
        "command": [*command, "--max-restarts", str(ssh.max_restarts), *source.arguments],
    }
    words = []
    if not ssh.workspace:
        listed = ", ".join(files) or "nothing"
        words.append(
            f"{PACKAGE} stands for a folder with {listed} alone, which is copied to {', '.join(hosts.hosts)}"
        )
    if FS_NAME in hosts.environment:
        words.append(f"`environment` of the hosts has {FS_NAME}: {hosts.environment[FS_NAME]}")
    return Outcome(facts, words="; ".join(words))


@contextlib.contextmanager
def ssh_job(request: Request, new_display: Callable[[], Display | None]) -> Iterator[SshCluster]:
    """The job, ready to train; its package is there until the block ends."""
    hosts, ssh, source = read_hosts(request), request.backend.ssh, _source(request)
    job = job_name()
    with tempfile.TemporaryDirectory(prefix="clickmill-package-") as folder:
        if not ssh.workspace:
            for file in collect_package(request.config, request.backend):
                (Path(folder) / file.name).write_bytes(file.read())
        yield SshCluster(
            hosts,
            source,
            Path(job),
            package=None if ssh.workspace else Path(folder),
            workspace=ssh.workspace or None,
            new_display=new_display,
            max_restarts=ssh.max_restarts,
            job=job,
        )


def _hosts_file(request: Request) -> Path:
    return Path(request.backend.file).parent / request.backend.ssh.hosts_file


def _source(request: Request) -> Source:
    source = replace(request.source, model=config_name(request.config) or request.source.model)
    overrides = (*class_overrides(request, "cluster_train"), *communicator_overrides(request))
    return replace(source, overrides=overrides)
