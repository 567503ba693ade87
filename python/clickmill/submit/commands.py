"""Jobs that are a command of this machine: a local cluster, or mpirun."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.launch.role import CLICKMILL
from clickmill.store.named_path import is_file
from clickmill.submit.final import RUNS_HERE
from clickmill.submit.size import job_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.submit.request import Request

logger = logging.getLogger(__name__)


def local_overrides(request: Request) -> tuple[str, ...]:
    """What makes the runner one that this machine runs whole: its class, numbers and knobs."""
    if request.runner.class_name in RUNS_HERE:
        found = [*class_overrides(request, "local_cluster_train"), *size_overrides(request)]
    else:
        found = [*request.source.overrides, f"mode={json.dumps(request.runner.name)}"]
    return (*found, *communicator_overrides(request))


def mpi_command(request: Request, *, is_json: bool = False, is_plan: bool = False) -> tuple[str, ...]:
    """The mpirun of a job: servers and trainers, or ranks of a collective run.

    It need not be here where it `is_plan`, to be typed elsewhere.
    """
    size = job_size(request.backend, request.runner)
    mpi = request.backend.mpi
    mpirun = shutil.which(mpi.mpirun)
    if mpirun is None:
        message = f"there is no command `{mpi.mpirun}` on this machine; install MPI, or name the command here"
        problem = request.backend.problem(message, ("mpi", "mpirun"))
        if not is_plan:
            raise ConfigError.of([problem])
        logger.warning("%s", problem)
        mpirun = mpi.mpirun
    num_servers = 0 if request.runner.is_collective else size.servers
    argv = [mpirun, "-n", str(num_servers + size.workers)]
    if mpi.hostfile:
        hostfile = Path(request.backend.file).parent / mpi.hostfile
        if not is_file(hostfile):
            message = (
                f"there is no file `{hostfile}`; name one with a line for each host, relative to backend.yaml"
            )
            raise ConfigError.of([request.backend.problem(message, ("mpi", "hostfile"))])
        # Ranks go around the hosts: each gets a server, then a trainer.
        argv += ["--hostfile", str(hostfile), "--map-by", "node"]
    overrides = (
        *class_overrides(request, "cluster_train"),
        *size_overrides(request),
        *communicator_overrides(request),
    )
    clickmill = (mpi.python, "-m", "clickmill") if mpi.python else CLICKMILL
    source = replace(request.source, overrides=overrides)
    train = [*clickmill, *source.talk, "train", *source.arguments]
    return (*argv, *mpi.arguments, *train, *(["--json"] if is_json else []))


def class_overrides(request: Request, class_name: str) -> Iterator[str]:
    """The overrides that were typed, with the runner, and its class in place of any that is among them."""
    key = f"{request.place}.class"
    yield from (each for each in request.source.overrides if each.partition("=")[0].strip() != key)
    yield f"mode={json.dumps(request.runner.name)}"
    yield f"{key}={class_name}"


def size_overrides(request: Request) -> Iterator[str]:
    """The numbers of processes, for the runner."""
    size = job_size(request.backend, request.runner)
    yield f"{request.place}.worker_num={size.workers}"
    if not request.runner.is_collective:
        yield f"{request.place}.server_num={size.servers}"


def communicator_overrides(request: Request) -> Iterator[str]:
    """Knobs that backend.yaml sets, for the runner."""
    communicator = request.backend.config.communicator
    for key in sorted(communicator.model_fields_set):
        yield f"{request.place}.communicator.{key}={json.dumps(getattr(communicator, key))}"


def run_mpi(request: Request, *, is_json: bool = False) -> None:
    """Become mpirun: same process, same terminal, same signals. Does not return."""
    argv = mpi_command(request, is_json=is_json)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        message = f"`{argv[0]}` does not start: {error.strerror}; name the `mpirun` of your MPI"
        raise ConfigError.of([request.backend.problem(message, ("mpi", "mpirun"))]) from error
