"""`kubernetes` of backend.yaml: where and how the pods of a job run."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from clickmill._section import Count, Integer, OneOrMany
from clickmill.config.backend.pod_values import (
    ExportedPath,
    HostName,
    HostPath,
    Image,
    Label,
    LabelKey,
    LabelValue,
    Mount,
    ObjectName,
    Restarts,
    Size,
    TaintKey,
    Variable,
    VariableText,
    VolumeName,
    mount_place,
)
from clickmill.config.backend.section import BackendSection, Quantity

MAX_PORT = 65_535


class Toleration(BackendSection):
    """A taint of nodes that pods of the job put up with."""

    key: TaintKey = ""
    """Key of the taint. Empty: every one, with `operator: Exists`."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """`Exists`: whatever the value."""
    value: LabelValue = ""
    """Value of the taint; with `Equal` alone."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Absent: all of them."""
    toleration_seconds: Count | None = None
    """`NoExecute`: how long a pod stays. Absent: for ever."""

    @model_validator(mode="after")
    def _is_what_kubernetes_takes(self) -> Self:
        if not self.key and self.operator != "Exists":
            raise ValueError("without a `key` it is for every taint, and needs `operator: Exists`")
        if self.value and self.operator == "Exists":
            raise ValueError("has a `value`, but `operator: Exists` asks for none; leave one of them out")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise ValueError("has `toleration_seconds`, which needs `effect: NoExecute`")
        return self


class RoleResources(BackendSection):
    """What each pod of a role asks for, and what it may not pass."""

    cpu: Quantity = ""
    """Cores that it asks for. Empty: those of `submit`."""
    memory: Quantity = ""
    """Memory that it asks for. Empty: 1Gi, and no limit."""
    cpu_limit: Quantity = ""
    """Cores that it may not pass. Empty: no limit."""
    memory_limit: Quantity = ""
    """Memory at which it is killed. Empty: as much as it asks for."""
    ephemeral_storage: Quantity = ""
    """Disk of the node that it asks for."""


class Resources(BackendSection):
    """Resources by role."""

    pserver: RoleResources = RoleResources()
    """Of each parameter server."""
    trainer: RoleResources = RoleResources()
    """Of each trainer."""
    worker: RoleResources = RoleResources()
    """Of each worker of a collective job."""


class OutputVolume(BackendSection):
    """Where run folders are kept: a claim that is there, a folder of a node, or a claim that is made."""

    claim: ObjectName = ""
    """Name of a claim that is there already."""
    host_path: HostPath = ""
    """Folder of the node that `model_node` chooses."""
    size: Size = "10Gi"
    """Size of the claim that is made where neither is named."""
    storage_class: ObjectName = ""
    """Its storage class. Empty: that of the cluster."""
    access_mode: Literal["ReadWriteMany", "ReadWriteOnce"] = "ReadWriteMany"
    """`ReadWriteOnce`: all pods must come to one node."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if self.claim and self.host_path:
            raise ValueError("has `claim` and `host_path`; output is kept in one of them")
        return self


class NfsVolume(BackendSection):
    """A folder of an NFS server."""

    server: HostName
    """Its name or address."""
    path: ExportedPath
    """Folder that it exports."""


class Volume(BackendSection):
    """Something that is mounted into every pod: data, as a rule."""

    name: VolumeName
    """Name of the volume in the pods; each has its own."""
    claim: ObjectName = ""
    """Name of a claim."""
    host_path: HostPath = ""
    """Folder of every node."""
    nfs: NfsVolume | None = None
    """Folder of an NFS server."""
    mount: Mount
    """Where it is seen; a relative path lies below the working folder `/job`, like `train_data`."""
    read_only: bool = True
    """Pods may only read it."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if sum(map(bool, (self.claim, self.host_path, self.nfs))) != 1:
            raise ValueError("needs one of `claim`, `host_path` and `nfs`")
        return self

    @property
    def place(self) -> str:
        """Where pods see it, as an absolute path."""
        return mount_place(self.mount)


def _port_with_another(value: int) -> int:
    if value + 1 > MAX_PORT:
        raise ValueError(f"must be {MAX_PORT - 1} or less: the port after it is that of the metrics")
    return value


class KubernetesConfig(BackendSection):
    """A job on Kubernetes; read with `backend: Kubernetes`."""

    namespace: Label = ""
    """Namespace of the job. Empty: that of the context, else `default`."""
    context: str = ""
    """Context of the kubeconfig. Empty: the current one."""
    image: Image = ""
    """Image of the pods; needed."""
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """When nodes ask the registry for the image."""
    image_pull_secrets: Annotated[tuple[ObjectName, ...], OneOrMany] = ()
    """Secrets in the namespace with which nodes ask."""
    scheduler: Literal["volcano", "default"] = "volcano"
    """`default`: plain Kubernetes, a Job for each role, without gang and queue."""
    queue: ObjectName = "default"
    """Queue of Volcano."""
    priority_class: ObjectName = ""
    """PriorityClass of the job and its pods. Empty: none."""
    max_restarts: Restarts = 5
    """How often pods that fail are started again over the life of the job."""
    port: Annotated[Integer, Field(ge=1), AfterValidator(_port_with_another)] = 30_240
    """Port of the parameter servers; the one after it is that of the metrics."""
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels of the nodes that pods may run on."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that pods put up with."""
    resources: Resources = Resources()
    """What pods ask for; the cores of `submit` are the default."""
    output: OutputVolume = OutputVolume()
    """Where run folders are kept."""
    model_node: dict[LabelKey, LabelValue] = Field(default_factory=lambda: {"nodeType": "model"})
    """Labels of the node that keeps the output, where that is a folder of a node."""
    volumes: tuple[Volume, ...] = ()
    """What else is mounted."""
    env: dict[Variable, VariableText] = Field(default_factory=dict)
    """Variables for all pods; no secrets, which travel from the environment of `submit`."""
    insecure: bool = False
    """Processes of the job take connections without a token."""
