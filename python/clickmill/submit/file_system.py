"""The file system of a job for processes that are started from here: who finds it by variables of theirs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.config.backend.secrets import VARIABLES
from clickmill.errors import ConfigError
from clickmill.launch.hosts import load_hosts
from clickmill.store.remote.url import store_of
from clickmill.submit.inputs import inputs_of
from clickmill.submit.outputs import outputs_of
from clickmill.submit.redaction import MASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clickmill.errors import Problem
    from clickmill.submit.request import Request

FS_NAME, FS_UGI = VARIABLES["config", "fs_name"], VARIABLES["config", "fs_ugi"]
_USERS = (FS_UGI, f"{FS_UGI}_FILE", "HADOOP_USER_NAME")


def variables(request: Request, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What backend.yaml says and this environment does not."""
    environ = os.environ if environ is None else environ
    files = request.backend.config
    found = {FS_NAME: files.fs_name, FS_UGI: files.fs_ugi.get_secret_value()}
    return {name: value for name, value in found.items() if value and environ.get(name) != value}


def shown_variables(request: Request) -> dict[str, str]:
    """The same, to be shown."""
    return {name: MASK if name == FS_UGI else value for name, value in variables(request).items()}


def file_system_notes(request: Request) -> Iterator[Problem]:
    """What of it does not reach processes on other hosts, of a job that is on it."""
    if not _is_on_it(request):
        return
    files = request.backend.config
    if request.backend.backend == "SSH" and files.fs_ugi.get_secret_value() and not _has_user(request):
        message = (
            f"does not travel over ssh; name a file of the hosts as {FS_UGI}_FILE in `environment` of "
            f"`{request.backend.ssh.hosts_file}`"
        )
        yield request.backend.problem(message, ("config", "fs_ugi"))
    if request.backend.backend == "MPI" and request.backend.mpi.hostfile:
        for key, name, value in (
            ("fs_name", FS_NAME, files.fs_name),
            ("fs_ugi", FS_UGI, files.fs_ugi.get_secret_value()),
        ):
            if value and not any(name in word for word in request.backend.mpi.arguments):
                message = (
                    f"is the variable {name} of mpirun, which takes it to other hosts only if it is told to: "
                    f"with Open MPI by `mpi.arguments: -x {name}`"
                )
                yield request.backend.problem(message, ("config", key))


def _is_on_it(request: Request) -> bool:
    texts = [each.text for each in inputs_of(request)]
    texts += [each.text for each in outputs_of(request)]
    return any(store_of(text) == "hdfs" for text in texts)


def _has_user(request: Request) -> bool:
    file = Path(request.backend.file).parent / request.backend.ssh.hosts_file
    with contextlib.suppress(ConfigError):  # told where the hosts are needed
        return any(name in load_hosts(file).environment for name in _USERS)
    return False
