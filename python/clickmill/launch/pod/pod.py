"""Who this pod is, by the environment that its manifest gives it.

Names are stable and addresses are not: a pod that is made again has its old name and another IP. So the
number of a pod is the one at the end of its name, and others are found by names of the headless Service.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clickmill.launch.address import Address
from clickmill.launch.roles import HOST, JOB, METRICS_PORT, PORT, PSERVERS, ROLE, TRAINERS
from clickmill.launch.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Mapping

PodRole = Literal["pserver", "trainer", "worker"]

NAMESPACE = ("NAMESPACE", "POD_NAMESPACE")
NAME = ("POD_NAME",)
SERVICE = ("CLICKMILL_SERVICE",)
COMPLETION_INDEX = ("JOB_COMPLETION_INDEX",)
"""Set by Kubernetes in the pods of an Indexed Job, whose names end in a random word."""

INSTANCE_LABEL = "app.kubernetes.io/instance"
ROLE_LABEL = "clickmill.io/role"

DEFAULT_PORT = 30240
_ROLES: tuple[PodRole, ...] = ("pserver", "trainer", "worker")


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a job."""

    role: PodRole
    index: int
    job: str
    name: str
    namespace: str
    service: str
    """The headless Service that gives pods their names."""
    ip: str
    num_pservers: int
    """As many as the job began with, as of trainers; there may be more or fewer by now."""
    num_trainers: int
    port: int = DEFAULT_PORT
    metrics_port: int = 0
    """0: nobody scrapes it."""

    @property
    def title(self) -> str:
        """`trainer 0`, as people and logs call it."""
        return f"{self.role} {self.index}"

    @property
    def peers(self) -> PodRole:
        """The pods without which this one cannot begin: all servers, or all workers."""
        return "worker" if self.role == "worker" else "pserver"

    @property
    def num_peers(self) -> int:
        return self.num_trainers if self.role == "worker" else self.num_pservers

    @property
    def selector(self) -> str:
        """Finds all pods of the job."""
        return f"{INSTANCE_LABEL}={self.job}"

    def address_of(self, role: PodRole, index: int) -> Address:
        """Where another pod listens, whatever its IP."""
        return Address(f"{self.job}-{role}-{index}.{self.service}.{self.namespace}.svc", self.port)

    @property
    def meeting(self) -> Address:
        """Where all others meet: the coordinator, or rank 0."""
        return self.address_of(self.peers, 0)


def read_pod(environ: Mapping[str, str]) -> Pod:
    """The pod that `environ` describes; ConfigError that names every variable that is missing or wrong."""
    variables = Variables(environ)
    role = variables.read(_role, *ROLE)
    job, name = _needed(variables, JOB), _needed(variables, NAME)
    index = variables.count(*COMPLETION_INDEX)
    if index is None and name:
        found = re.search(r"-(\d+)$", name)
        index = int(found[1]) if found else None
        if index is None:
            variables.wrong(
                NAME[0], "does not end in the number of the pod, and JOB_COMPLETION_INDEX is not set"
            )
    if role is None and variables.name_of(*ROLE) is None:
        variables.wrong(ROLE[0], f"is not set; it must be {_listed()}")
    # Every process of a job has the same numbers, whatever its role.
    num_pservers = 0 if role == "worker" else _count(variables, PSERVERS)
    num_trainers = _count(variables, TRAINERS)
    pod_ip, namespace = _needed(variables, HOST), _needed(variables, NAMESPACE)
    # Of pservers and trainers there may be more by now than the job began with; ranks are as many for ever.
    if index is not None and role == "worker" and 0 < num_trainers <= index:
        variables.wrong(
            NAME[0], f"is number {index}, but `{variables.name_of(*TRAINERS)}` says {num_trainers}"
        )
    port, metrics_port = variables.port(*PORT), variables.port(*METRICS_PORT)
    service = variables.text(*SERVICE)
    variables.check(hint="`clickmill submit --dry-run -o yaml` shows a manifest with all variables of a pod")
    assert role is not None
    assert index is not None
    return Pod(
        role=role,
        index=index,
        job=job,
        name=name,
        namespace=namespace,
        service=service or f"{job}-pods",
        ip=pod_ip,
        num_pservers=num_pservers,
        num_trainers=num_trainers,
        port=port or DEFAULT_PORT,
        metrics_port=metrics_port or 0,
    )


def _role(text: str) -> PodRole:
    for role in _ROLES:
        if text.lower() == role:
            return role
    raise ValueError(f"must be {_listed()}, not `{text}`")


def _listed() -> str:
    return "PSERVER, TRAINER or WORKER"


def _needed(variables: Variables, names: tuple[str, ...]) -> str:
    found = variables.text(*names)
    if found is None and variables.name_of(*names) is None:
        variables.wrong(names[0], "is not set")
    return found or ""


def _count(variables: Variables, names: tuple[str, ...]) -> int:
    found = variables.count(*names, least=1)
    if found is None and variables.name_of(*names) is None:
        variables.wrong(names[0], "is not set")
    return found or 0
