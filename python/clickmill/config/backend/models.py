"""The sections of backend.yaml: which cluster a job goes to, its files there, what it asks for."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, PrivateAttr, SecretStr

from clickmill._section import Count, Words
from clickmill.config.backend.kubernetes import KubernetesConfig
from clickmill.config.backend.pod_values import Cards, Cores, Pods
from clickmill.config.backend.section import Arguments, BackendSection, Line, Secret, any_case
from clickmill.config.cluster import Communicator
from clickmill.config.document import Document, KeyPath, Place, dotted
from clickmill.config.translate import written_path
from clickmill.errors import Problem
from clickmill.store.remote.url import is_url, joined

BackendName = Literal["Local", "PaddleCloud", "Kubernetes", "SSH", "MPI"]
ClusterType = Literal["mpi", "k8s"]
Priority = Literal["normal", "high", "very_high"]

_BACKENDS = {
    "local": "Local",
    "paddlecloud": "PaddleCloud",
    "kubernetes": "Kubernetes",
    "k8s": "Kubernetes",
    "ssh": "SSH",
    "mpi": "MPI",
}
_CLUSTER_TYPES = {"mpi": "mpi", "k8s": "k8s", "kubernetes": "k8s"}
_PRIORITIES = {"normal": "normal", "high": "high", "very_high": "very_high", "very-high": "very_high"}
_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
MAX_NAME_LENGTH = 40
"""Of a job on Kubernetes: what is added to it must fit into 63 characters."""


def _job_name(value: str) -> str:
    if not _JOB_NAME.fullmatch(value):
        raise ValueError(
            f"must be of letters, digits, `_`, `-` and `.`, and start with a letter or digit, not `{value}`"
        )
    return value


def kubernetes_name(job_name: str) -> str:
    """The name of a job as Kubernetes takes it: a DNS label."""
    label = re.sub(r"[^a-z0-9]+", "-", job_name.lower()).strip("-")
    return label if label[:1].isalpha() else f"job-{label}"


class ClusterFiles(BackendSection):
    """Files of a job on the cluster, and how its processes are set up."""

    paddle_version: Line = "1.7.2"
    """PaddleCloud: read for older files; training needs no Paddle."""
    use_python3: bool = False
    """PaddleCloud: read for older files; clickmill always asks for Python 3."""
    install: Line = ""
    """PaddleCloud: what pip installs on the nodes: a requirement, an address, or a wheel on this machine.
    Empty: this version of clickmill."""
    fs_name: Line = ""
    """File system of the job, such as `hdfs://host:9000`; also from CLICKMILL_FS_NAME."""
    fs_ugi: Secret = SecretStr("")
    """User and password for it, `user,password`; better from CLICKMILL_FS_UGI or a file."""
    fs_ugi_file: Line = ""
    """File that holds `fs_ugi`, readable by you alone."""
    output_path: Line = ""
    """Folder on the file system for what the job writes; on Kubernetes copies of its checkpoints go there."""
    train_data_path: Line = ""
    """MPI: folder on the file system that nodes see as `./train_data`; also from
    CLICKMILL_TRAIN_DATA_PATH."""
    test_data_path: Line = ""
    """MPI: folder that nodes see as `./test_data`."""
    thirdparty_path: Line = ""
    """MPI: folder that nodes see as `./thirdparty`."""
    afs_remote_mount_point: Line = ""
    """K8S: folder that nodes see as `./afs`."""
    communicator: Communicator = Communicator()
    """Between trainers and servers; a key that is written here counts more than that of the runner. On
    PaddleCloud keys that are not written have the defaults of such jobs, by the number of threads."""

    def url_of(self, folder: str, *below: str) -> str:
        """What a key here names, and a path below it, for processes that reach file systems by URLs.

        A folder is one of `fs_name`; a URL stays as it is. Where it names no host, processes take that of
        `fs_name`, which they know by a variable.
        """
        return joined(folder, *below) if is_url(folder) else joined(self.fs_name, folder, *below)


class SubmitConfig(BackendSection):
    """The job: its name, its files, what it asks for."""

    ak: Secret = SecretStr("")
    """PaddleCloud: access key; better from CLICKMILL_AK or a file."""
    sk: Secret = SecretStr("")
    """PaddleCloud: secret key; better from CLICKMILL_SK or a file."""
    ak_file: Line = ""
    """File that holds `ak`, readable by you alone."""
    sk_file: Line = ""
    """File that holds `sk`, readable by you alone."""
    priority: Annotated[Priority, BeforeValidator(any_case(_PRIORITIES))] = "high"
    """PaddleCloud: priority among the jobs of the group."""
    job_name: Annotated[str, AfterValidator(_job_name)] = "PaddleRecClusterJob"
    """Name of the job."""
    group: Line = "paddle"
    """PaddleCloud: group whose machines are used."""
    start_cmd: Line = "python -m paddlerec.run -m config.yaml"
    """What nodes run; its `-m` names what is submitted, as it does where this key is absent. Outside
    PaddleCloud nothing else of it counts."""
    files: Words = ()
    """Files that go to the nodes, patterns like `./*.py`, relative to where the command is typed."""
    nodes: Pods = 1
    """MPI: machines; each has a parameter server and a trainer."""
    k8s_trainers: Pods = 1
    """K8S: trainers, or workers of a collective job."""
    k8s_cpu_cores: Cores | None = None
    """K8S: cores of each of them. Absent: 2 with parameter servers, 1 in a collective job."""
    k8s_gpu_card: Cards = 1
    """K8S: cards of each worker of a collective job with `device: gpu`."""
    k8s_ps_num: Pods = 1
    """K8S: parameter servers."""
    k8s_ps_cores: Cores = 2
    """K8S: cores of each of them."""

    @property
    def name(self) -> str:
        """The name of the job as Kubernetes takes it."""
        return kubernetes_name(self.job_name)

    def cpu_cores(self, *, is_collective: bool) -> int:
        """Cores of a trainer or worker."""
        return self.k8s_cpu_cores or (1 if is_collective else 2)


class SshBackend(BackendSection):
    """A job on hosts that are reached with ssh; read with `backend: SSH`."""

    hosts_file: str = "hosts.yaml"
    """The machines, as for `clickmill ssh-cluster`; relative to backend.yaml."""
    workspace: str = ""
    """Folder that lies on every host already, in place of the copy of `files`."""
    max_restarts: Count = 3
    """How often a process that dies is started again."""


class MpiBackend(BackendSection):
    """A job under mpirun; read with `backend: MPI`."""

    mpirun: str = "mpirun"
    """The command."""
    hostfile: str = ""
    """Hosts and their slots, relative to backend.yaml. Empty: this machine."""
    arguments: Arguments = ()
    """More arguments for mpirun, such as `--oversubscribe`."""
    python: str = ""
    """Python on the hosts that has clickmill. Empty: the one that submits."""


class BackendConfig(BackendSection):
    """Where a job goes, and what it asks for there."""

    backend: Annotated[BackendName, BeforeValidator(any_case(_BACKENDS))]
    """Where it is trained; in any case. `k8s` is read as `Kubernetes`."""
    cluster_type: Annotated[ClusterType, BeforeValidator(any_case(_CLUSTER_TYPES))] | None = None
    """PaddleCloud: kind of cluster; needed there, in any case."""
    config: ClusterFiles = ClusterFiles()
    """Files on the cluster."""
    submit: SubmitConfig = SubmitConfig()
    """The job."""
    kubernetes: KubernetesConfig = KubernetesConfig()
    """Pods."""
    ssh: SshBackend = SshBackend()
    """Hosts."""
    mpi: MpiBackend = MpiBackend()
    """Ranks."""

    _file: str = PrivateAttr(default="")
    _notes: tuple[Problem, ...] = PrivateAttr(default=())
    _document: Document | None = PrivateAttr(default=None)

    @property
    def file(self) -> str:
        """Where it was read from; empty for one made in code."""
        return self._file

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What is allowed but looks like a mistake."""
        return self._notes

    @property
    def secret_files(self) -> tuple[str, ...]:
        """Files that hold secrets, as they are named here."""
        names = (self.config.fs_ugi_file, self.submit.ak_file, self.submit.sk_file)
        return tuple(name for name in names if name)

    def problem(self, message: str, path: KeyPath) -> Problem:
        """A problem with the value at `path`, with the line in which it stands, for what is found later."""
        if self._document is None:
            return Place(self.file).problem(message, key=dotted(path))
        path = written_path(self._document, type(self), path)
        return self._document.value_place(path).problem(message, key=dotted(path))

    def has_place(self, path: KeyPath) -> bool:
        """Whether something was written at `path`."""
        if self._document is None:
            return False
        return written_path(self._document, type(self), path) in self._document.values
