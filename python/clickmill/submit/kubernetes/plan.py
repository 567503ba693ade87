"""What is to be made of the two configurations: everything that the objects of a job are written from."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from clickmill.config.backend.checks import backend_problems
from clickmill.config.backend.exposure import exposed_secrets, exposed_variables
from clickmill.errors import ConfigError
from clickmill.submit.kubernetes.names import RESERVED, Names, RoleName
from clickmill.submit.kubernetes.resources import Request, amount, role_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clickmill.config import Config, RunnerConfig
    from clickmill.config.backend import BackendConfig, KubernetesConfig
    from clickmill.config.document import KeyPath
    from clickmill.errors import Problem

MAX_PACKAGE_BYTES = 1_000_000
"""What etcd takes as one object is 1.5 MiB, what the API server takes as the data of a ConfigMap 1 MiB."""
_KEY = re.compile(r"(?!\.\.|\.$)[-._a-zA-Z0-9]{1,253}")
_FILES: KeyPath = ("submit", "files")


@dataclass(frozen=True, slots=True)
class RolePlan:
    """Pods of one role."""

    name: RoleName
    replicas: int
    min_available: int
    """So many must be there at once, or none is started."""
    request: Request


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job on Kubernetes."""

    names: Names
    namespace: str
    roles: tuple[RolePlan, ...]
    """Parameter servers before trainers; of a collective job the workers alone."""
    config_file: str
    """What pods give to `-m`: name of a file of the package, or of a built-in model."""
    package: Mapping[str, bytes] = field(repr=False)
    """Files that the pods see, by name."""
    settings: KubernetesConfig
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables for all pods besides those that give them their role."""
    overrides: tuple[str, ...] = ()
    """What pods give to `--set`: single values of the configuration that are others in this job."""
    access_variables: tuple[str, ...] = ()
    """Names of the variables that the Secret `NAME-access` holds; what they hold is no part of a plan."""

    @property
    def is_collective(self) -> bool:
        """Whether it is a job of equal workers, without parameter servers."""
        return self.roles[0].name == "worker"

    @property
    def is_volcano(self) -> bool:
        """Whether Volcano schedules it, as a gang."""
        return self.settings.scheduler == "volcano"

    @property
    def has_token(self) -> bool:
        """Whether its processes know each other by one: with servers, unless anybody may connect to them."""
        return not self.is_collective and not self.settings.insecure

    @property
    def metrics_port(self) -> int:
        return self.settings.port + 1

    @property
    def min_available(self) -> int:
        """Size of the gang."""
        return sum(role.min_available for role in self.roles)

    @property
    def package_digest(self) -> str:
        """Of names and contents of all files of the package."""
        digest = hashlib.sha256()
        for name, content in sorted(self.package.items()):
            digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
        return digest.hexdigest()

    def role(self, name: RoleName) -> RolePlan:
        """Raises KeyError where the job has no such role."""
        return {role.name: role for role in self.roles}[name]


def make_plan(
    config: Config,
    backend: BackendConfig,
    package: Mapping[str, bytes],
    *,
    namespace: str,
    config_file: str,
    overrides: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    own_variables: Mapping[str, str] | None = None,
    access_variables: tuple[str, ...] = (),
) -> JobPlan:
    """The plan of a job in `namespace`. Raises ConfigError with all that does not fit on Kubernetes.

    `environment` comes of the two files, `own_variables` are those of this machine that go along.
    """
    env = backend.kubernetes.env
    own = {name: value for name, value in (own_variables or {}).items() if name not in env}
    problems = [
        *backend_problems(backend),
        *pod_problems(config, backend),
        *exposed_secrets(backend, config, overrides),
        *exposed_variables(backend, own),
        *_package_problems(backend, package),
    ]
    if problems:
        raise ConfigError.of(problems)
    return JobPlan(
        names=Names(backend.submit.name),
        namespace=namespace,
        roles=roles_of(backend, config.runners()[0]),
        config_file=config_file,
        package=MappingProxyType(dict(package)),
        settings=backend.kubernetes,
        environment=MappingProxyType({**(environment or {}), **own, **env}),
        overrides=overrides,
        access_variables=access_variables,
    )


def roles_of(backend: BackendConfig, runner: RunnerConfig | None = None) -> tuple[RolePlan, ...]:
    """The pods that `backend` asks for; those of a job with parameter servers where no runner is given."""
    submit, resources = backend.submit, backend.kubernetes.resources
    is_collective = runner is not None and runner.is_collective
    cores = str(submit.cpu_cores(is_collective=is_collective))
    if runner is not None and is_collective:
        cards = submit.k8s_gpu_card if runner.device == "gpu" else 0
        request = role_request(resources.worker, cores=cores, cards=cards)
        return (RolePlan("worker", submit.k8s_trainers, submit.k8s_trainers, request),)
    servers = role_request(resources.pserver, cores=str(submit.k8s_ps_cores))
    trainers = role_request(resources.trainer, cores=cores)
    return (
        RolePlan("pserver", submit.k8s_ps_num, submit.k8s_ps_num, servers),
        # One of them, the chief, belongs to the gang; the others come when there is room.
        RolePlan("trainer", submit.k8s_trainers, 1, trainers),
    )


def pod_problems(config: Config, backend: BackendConfig) -> Iterator[Problem]:
    """What the values of `kubernetes`, each of which may be right, cannot be together."""
    settings = backend.kubernetes
    for name in sorted(RESERVED & set(settings.env)):
        message = "is what tells a pod its place in the job; it cannot be set for all of them"
        yield backend.problem(message, ("kubernetes", "env", name))
    yield from _volume_problems(backend)
    if len(config.mode) == 1:
        for role in roles_of(backend, config.runners()[0]):
            yield from _limit_problems(backend, role)


def _volume_problems(backend: BackendConfig) -> Iterator[Problem]:
    names: set[str] = set()
    places: dict[str, str] = {}
    for index, volume in enumerate(backend.kubernetes.volumes):
        path: KeyPath = ("kubernetes", "volumes", index)
        if volume.name in names:
            message = f"there are two volumes `{volume.name}`; give each a name of its own"
            yield backend.problem(message, (*path, "name"))
        names.add(volume.name)
        if volume.place in places:
            message = f"is `{volume.place}`, where volume `{places[volume.place]}` is mounted; name another"
            yield backend.problem(message, (*path, "mount"))
        places.setdefault(volume.place, volume.name)


def _limit_problems(backend: BackendConfig, role: RolePlan) -> Iterator[Problem]:
    for key, limit in role.request.limits.items():
        asked = role.request.requests.get(key, "0")
        if amount(asked) > amount(limit):
            message = f"is {limit}, but a {role.name} asks for {asked}; raise it, or set `{key}` here to less"
            yield backend.problem(message, ("kubernetes", "resources", role.name, f"{key}_limit"))


def _package_problems(backend: BackendConfig, package: Mapping[str, bytes]) -> list[Problem]:
    problems = [
        backend.problem(
            f"file `{name}` cannot travel under that name; rename it with letters, digits, `.`, `_` and `-`, "
            "at most 253 of them and no `..` at the start",
            _FILES,
        )
        for name in package
        if not _KEY.fullmatch(name)
    ]
    num_bytes = sum(len(name) + len(content) for name, content in package.items())
    if num_bytes > MAX_PACKAGE_BYTES:
        largest = sorted(package, key=lambda name: -len(package[name]))[:3]
        named = ", ".join(f"`{name}` {len(package[name]):,}" for name in largest)
        message = (
            f"the files of the job have {num_bytes:,} bytes, a ConfigMap takes {MAX_PACKAGE_BYTES:,} "
            f"(largest: {named}); put large files on a volume of `kubernetes.volumes`, into the image, or "
            "read them from HDFS, S3 or HTTP"
        )
        problems.append(backend.problem(message, _FILES))
    return problems
