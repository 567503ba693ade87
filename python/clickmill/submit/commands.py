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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.submit.request import Request

logger = logging.getLogger(__name__)

_RUNS_HERE = frozenset({"cluster_train", "local_cluster_train"})


def local_overrides(request: Request) -> tuple[str, ...]:
    """What makes the runner one that this machine runs whole: its class, numbers and knobs."""
    place, runner = request.place, request.runner
    found = [*request.source.overrides, f"mode={json.dumps(runner.name)}"]
    if runner.class_name in _RUNS_HERE:
        found.append(f"{place}.class=local_cluster_train")
        found += size_overrides(request)
    return (*found, *communicator_overrides(request))


def mpi_command(request: Request, *, is_json: bool = False, is_plan: bool = False) -> tuple[str, ...]:
    """The mpirun of a job: servers and trainers, or ranks of a collective run.

    It need not be here where it `is_plan`, to be typed elsewhere.
    """
    servers, workers = job_size(request)
    mpi = request.backend.mpi
    mpirun = shutil.which(mpi.mpirun)
    if mpirun is None:
        message = f"there is no command `{mpi.mpirun}` on this machine; install MPI, or name the command here"
        problem = request.backend.problem(message, ("mpi", "mpirun"))
        if not is_plan:
            raise ConfigError.of([problem])
        logger.warning("%s", problem)
        mpirun = mpi.mpirun
    argv = [mpirun, "-n", str(workers if request.runner.is_collective else servers + workers)]
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
        *request.source.overrides,
        f"mode={json.dumps(request.runner.name)}",
        f"{request.place}.class=cluster_train",
        *size_overrides(request),
        *communicator_overrides(request),
    )
    clickmill = (mpi.python, "-m", "clickmill") if mpi.python else CLICKMILL
    source = replace(request.source, overrides=overrides)
    train = [*clickmill, *source.talk, "train", *source.arguments]
    return (*argv, *mpi.arguments, *train, *(["--json"] if is_json else []))


def job_size(request: Request) -> tuple[int, int]:
    """Parameter servers, and trainers or workers: what `submit` says, else what the runner says."""
    submit, runner = request.backend.submit, request.runner
    told = submit.model_fields_set
    is_mpi = request.backend.backend == "MPI" or request.backend.cluster_type == "mpi"
    if is_mpi:
        is_told = "nodes" in told
        return (submit.nodes, submit.nodes) if is_told else (runner.server_num, runner.worker_num)
    servers = submit.k8s_ps_num if "k8s_ps_num" in told else runner.server_num
    workers = submit.k8s_trainers if "k8s_trainers" in told else runner.worker_num
    return servers, workers


def size_overrides(request: Request) -> Iterator[str]:
    """The numbers of processes, for the runner."""
    servers, workers = job_size(request)
    yield f"{request.place}.worker_num={workers}"
    if not request.runner.is_collective:
        yield f"{request.place}.server_num={servers}"


def communicator_overrides(request: Request) -> Iterator[str]:
    """Knobs that backend.yaml sets, for the runner."""
    communicator = request.backend.config.communicator
    for key in sorted(communicator.model_fields_set):
        yield f"{request.place}.communicator.{key}={json.dumps(getattr(communicator, key))}"


def run_in_place(argv: tuple[str, ...]) -> None:
    """Become the command: same process, same terminal, same signals. Does not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], argv)
