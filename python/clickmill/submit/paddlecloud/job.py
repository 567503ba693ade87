"""A job for PaddleCloud: which of its three kinds it is, and all that its files are written from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from clickmill.submit.redaction import MASK

if TYPE_CHECKING:
    from clickmill.config import Config, RunnerConfig
    from clickmill.config.backend import BackendConfig

DistributeMode = Literal["PS_CPU_MPI", "COLLECTIVE_GPU_K8S", "PS_CPU_K8S"]


def distribute_mode(backend: BackendConfig, runner: RunnerConfig) -> DistributeMode:
    """By the type of the cluster and the device; the job has been checked before."""
    if backend.cluster_type == "mpi":
        return "PS_CPU_MPI"
    return "COLLECTIVE_GPU_K8S" if runner.device == "gpu" else "PS_CPU_K8S"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Secrets of a job; those that the environment gives are not written down again."""

    ak: str = field(repr=False)
    sk: str = field(repr=False)
    fs_ugi: str = field(repr=False)
    token: str = field(repr=False)
    """By which the processes of the job know each other."""
    is_ak_in_environment: bool = False
    is_sk_in_environment: bool = False

    def masked(self) -> Credentials:
        """To be shown."""
        return replace(self, ak=MASK, sk=MASK, fs_ugi=MASK, token=MASK)


@dataclass(frozen=True, slots=True)
class Job:
    """What the files of a submission folder are written from."""

    backend: BackendConfig
    mode: DistributeMode
    credentials: Credentials
    start_command: str
    """What nodes run."""
    num_threads: int
    """`CPU_NUM`: the most threads of a phase."""
    requirement: str
    """What pip installs on the nodes."""

    @property
    def is_mpi(self) -> bool:
        return self.mode == "PS_CPU_MPI"

    @property
    def device(self) -> str:
        return "gpu" if self.mode == "COLLECTIVE_GPU_K8S" else "cpu"


def most_threads(config: Config, runner: RunnerConfig) -> int:
    """The largest `thread_num` of the phases."""
    return max(phase.thread_num for phase in config.phases_of(runner))
