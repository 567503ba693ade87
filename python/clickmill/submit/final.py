"""The configuration as processes of a job get it, and why they would refuse it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.config.checks import run_problems
from clickmill.submit.size import job_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config import Config
    from clickmill.config.document import KeyPath
    from clickmill.errors import Problem
    from clickmill.submit.request import Request

RUNS_HERE = frozenset({"cluster_train", "local_cluster_train"})
"""Classes that a job for this machine runs whole; others are one process, which stays one."""
_CLASSES = {"Local": "local_cluster_train", "MPI": "cluster_train", "Kubernetes": "cluster_train"}
"""What backends that are told of a size make of the runner."""


def final_config(request: Request) -> Config:
    """The configuration with what the backend changes of the runner: its class and its numbers."""
    backend, runner = request.backend, request.runner
    class_name = _CLASSES.get(backend.backend)
    if class_name is None or runner.class_name not in RUNS_HERE:
        return request.config
    size = job_size(backend, runner)
    changes: dict[str, Any] = {
        "class_name": class_name,
        "server_num": size.servers,
        "worker_num": size.workers,
    }
    changed = runner.model_copy(update=changes)
    runners = tuple(changed if each is runner else each for each in request.config.runner)
    return request.config.model_copy(update={"runner": runners})


def final_problems(request: Request, config: Config) -> Iterator[Problem]:
    """Why processes would refuse `config`, the final one; each told where its value was written."""
    if request.backend.backend not in _CLASSES:
        return
    keys: dict[str, KeyPath | None] = {}
    if config is not request.config:
        size = job_size(request.backend, request.runner)
        keys[f"{request.place}.server_num"] = size.servers_key
        keys[f"{request.place}.worker_num"] = size.workers_key
    for problem in run_problems(config):
        key = keys.get(problem.key or "")
        yield problem if key is None else request.backend.problem(problem.message, key)
