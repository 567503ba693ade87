"""How many processes a job has, and which file says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickmill.config import RunnerConfig
    from clickmill.config.backend import BackendConfig
    from clickmill.config.document import KeyPath


@dataclass(frozen=True, slots=True)
class JobSize:
    """Processes by role, and the keys of backend.yaml that say how many; None where the runner does."""

    servers: int
    workers: int
    servers_key: KeyPath | None
    workers_key: KeyPath | None


def job_size(backend: BackendConfig, runner: RunnerConfig) -> JobSize:
    """Parameter servers, and trainers or workers: what `submit` says, else what the runner says."""
    submit, told = backend.submit, backend.submit.model_fields_set
    if backend.backend == "Kubernetes":  # has no use for what the runner says
        told = told | {"k8s_ps_num", "k8s_trainers"}
    elif backend.backend == "MPI" or backend.cluster_type == "mpi":
        if "nodes" not in told:
            return JobSize(runner.server_num, runner.worker_num, None, None)
        return JobSize(submit.nodes, submit.nodes, ("submit", "nodes"), ("submit", "nodes"))
    has_servers, has_workers = "k8s_ps_num" in told, "k8s_trainers" in told
    return JobSize(
        submit.k8s_ps_num if has_servers else runner.server_num,
        submit.k8s_trainers if has_workers else runner.worker_num,
        ("submit", "k8s_ps_num") if has_servers else None,
        ("submit", "k8s_trainers") if has_workers else None,
    )
