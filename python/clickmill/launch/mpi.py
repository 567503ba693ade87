"""Ranks of an MPI job, by what mpirun and srun leave in the environment; no MPI library is needed.

The first `server_num` ranks are parameter servers, the others trainers; in a collective run all are workers.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.launch.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Mapping

RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
JOB = ("CLICKMILL_JOB", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID", "PMI_PORT")
"""The first that is set tells one job from another in the same folder."""


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of this process in an MPI job."""

    rank: int
    size: int
    job: str
    local_rank: int = 0
    is_one_host: bool = False
    """Whether all ranks are known to be on this machine."""


def read_rank(environ: Mapping[str, str]) -> Rank | None:
    """The rank of this process; None where no MPI launcher started it.

    Raises ConfigError where a launcher left out what is needed.
    """
    variables = Variables(environ)
    rank_name, size_name = variables.name_of(*RANK), variables.name_of(*SIZE)
    if rank_name is None:
        return None
    rank = variables.count(rank_name)
    if size_name is None:
        variables.wrong(SIZE[0], f"is not set, though `{rank_name}` is; set it to the number of ranks")
    size = None if size_name is None else variables.count(size_name, least=1)
    job_name = variables.name_of(*JOB)
    if job_name is None:
        variables.wrong(JOB[0], "is not set; give all ranks one text that no other job has")
    if rank is not None and size is not None and rank >= size:
        variables.wrong(rank_name, f"says {rank}, but there are {size} ranks by `{size_name}`")
    local_size, local_rank = variables.name_of(*LOCAL_SIZE), variables.name_of(*LOCAL_RANK)
    num_local = None if local_size is None else variables.count(local_size, least=1)
    place = 0 if local_rank is None else variables.count(local_rank)
    variables.check(hint="start the job with `mpirun -n N clickmill train -m config.yaml`")
    assert rank is not None
    assert size is not None
    job = variables.text(job_name or "") or ""
    return Rank(rank, size, job, place or 0, is_one_host=num_local == size)


def own_host(rank: Rank, environ: Mapping[str, str]) -> str:
    """An address of this machine that the other ranks reach."""
    told = environ.get("CLICKMILL_HOST", "").strip()
    if told:
        return told
    if rank.is_one_host:
        return "127.0.0.1"
    name = socket.gethostname()
    try:
        found = {str(item[4][0]) for item in socket.getaddrinfo(name, None, family=socket.AF_INET)}
    except OSError:
        found = set()
    reachable = sorted(host for host in found if not host.startswith("127."))
    if not reachable:
        raise ConfigError(
            f"the name of this machine, `{name}`, gives no address that other machines reach",
            hint="set CLICKMILL_HOST on each machine to the address that the others know it by",
        )
    return reachable[0]
