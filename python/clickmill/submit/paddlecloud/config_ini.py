"""config.ini: environment of the nodes, and where the platform finds data.

The platform hands these lines to every process as variables; `launch/roles.py` reads those that we know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.submit.paddlecloud.job import Job

RPC_DEADLINE_MS = 300_000
AFS_FOLDER = "/root/paddlejob/workspace/env_run/afs/"
"""Where the platform mounts; nodes see it as `./afs`."""


def config_ini(job: Job) -> str:
    """The whole file."""
    lines = _mpi(job) if job.is_mpi else _k8s(job)
    return "\n".join((*lines, *_shared(job), *_communicator(job))) + "\n"


def _mpi(job: Job) -> Iterator[str]:
    files = job.backend.config
    yield "# File system of the job"
    yield 'storage_type="hdfs"'
    yield 'force_reuse_output_path="True"'
    yield f"fs_name={files.fs_name}"
    yield f"fs_ugi={job.credentials.fs_ugi}"
    yield ""
    yield f"FLAGS_rpc_deadline={RPC_DEADLINE_MS}"
    yield ""
    yield "# Folders there; nodes see the first, second and last as ./train_data, ./test_data, ./thirdparty"
    yield f"train_data_path={files.train_data_path}"
    yield f"test_data_path={files.test_data_path}"
    yield f"output_path={files.output_path}"
    yield f"thirdparty_path={files.thirdparty_path}"


def _k8s(job: Job) -> Iterator[str]:
    files = job.backend.config
    yield "# File system of the job"
    yield f"fs_name={files.fs_name}"
    yield f"fs_ugi={job.credentials.fs_ugi}"
    yield f"output_path={files.output_path}"
    yield ""
    yield "# Folder there that nodes see as ./afs"
    yield 'mount_afs="true"'
    yield f"AFS_REMOTE_MOUNT_POINT={files.afs_remote_mount_point}"
    yield f'afs_local_mount_point="{AFS_FOLDER}"'


def _shared(job: Job) -> Iterator[str]:
    yield ""
    yield "# On a node: train, do not submit"
    yield "PADDLE_PADDLEREC_ROLE=WORKER"
    yield f"PADDLEREC_CLUSTER_TYPE={'MPI' if job.is_mpi else 'K8S'}"
    yield "use_python3=1"
    yield f"CPU_NUM={job.num_threads}"
    yield "GLOG_v=0"
    yield ""
    yield "# The processes of this job know each other by it"
    yield f"CLICKMILL_TOKEN={job.credentials.token}"
    yield ""


def _communicator(job: Job) -> Iterator[str]:
    """What backend.yaml says; else the defaults of such jobs, which go by the number of threads."""
    communicator = job.backend.config.communicator
    defaults = {
        "is_sgd_optimizer": 0,
        "send_queue_size": job.num_threads,
        "thread_pool_size": 32,
        "max_merge_var_num": job.num_threads,
        "max_send_grad_num_before_recv": job.num_threads,
        "fake_rpc": 0,
    }
    for key, default in defaults.items():
        value = getattr(communicator, key) if key in communicator.model_fields_set else default
        yield f"FLAGS_communicator_{key}={int(value)}"
    yield f"FLAGS_rpc_retry_times={communicator.rpc_retry_times}"
