"""Checks of a job before it is submitted: what config.yaml and backend.yaml must agree on.

All problems are reported at once, each with the place in the file that has to be changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import clickmill
from clickmill.config.backend.exposure import exposed_secrets, notes_on_variables
from clickmill.config.backend.models import MAX_NAME_LENGTH
from clickmill.config.backend.pod_values import OUTPUT
from clickmill.config.backend.secrets import SECRETS, VARIABLES
from clickmill.config.checks import PS_ON_CARDS, server_problems
from clickmill.store.remote.url import Fault, fault_of, is_url, names_no_host

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clickmill.config.backend.models import BackendConfig
    from clickmill.config.config import Config
    from clickmill.config.document import KeyPath
    from clickmill.config.runner import RunnerConfig
    from clickmill.errors import Problem

_FOLDERS = ("train_data_path", "test_data_path", "thirdparty_path", "afs_remote_mount_point")
_ELSEWHERE = "`backend: Kubernetes`, `MPI`, `SSH` or `Local`"


def submit_problems(config: Config, backend: BackendConfig, overrides: Sequence[str] = ()) -> list[Problem]:
    """Why the job cannot be submitted; empty where it can. `overrides` are those that the nodes get."""
    problems = list(_modes(config))
    if not problems:
        runner = config.runners()[0]
        problems += _runner(config, runner)
        if backend.backend == "PaddleCloud":
            problems += _paddlecloud_runner(config, backend, runner)
        problems += _cards(backend, runner)
    return [*problems, *backend_problems(backend), *exposed_secrets(backend, config, overrides)]


def backend_problems(backend: BackendConfig) -> list[Problem]:
    """Why nothing can be submitted with it, whatever config.yaml says."""
    if backend.backend == "PaddleCloud":
        return list(_paddlecloud(backend))
    return list(_kubernetes(backend)) if backend.backend == "Kubernetes" else []


def submit_notes(config: Config, backend: BackendConfig) -> list[Problem]:
    """What is allowed but may not be meant."""
    if backend.backend == "PaddleCloud":
        return list(_paddlecloud_notes(config, backend))
    if backend.backend == "Kubernetes":
        return [*notes_on_variables(backend), *_idle_sizes(backend), *_idle_pod_keys(config, backend)]
    return [*_idle_keys(backend), *_idle_sizes(backend)]


def is_single_card(backend: BackendConfig, runner: RunnerConfig) -> bool:
    """Whether it is one process with one card, for which `class: train` is right on PaddleCloud."""
    return (
        backend.cluster_type == "k8s"
        and runner.device == "gpu"
        and runner.class_name == "train"
        and not runner.is_cluster
    )


def _modes(config: Config) -> Iterator[Problem]:
    if len(config.mode) > 1:
        message = (
            f"names {len(config.mode)} runners; a job is one of them: choose it with "
            f"`--set mode={config.mode[0]}`"
        )
        yield config.problem(message, ("mode",))


def _runner(config: Config, runner: RunnerConfig) -> Iterator[Problem]:
    index = config.runner.index(runner)
    if runner.class_name == "infer":
        message = (
            "`infer` runs in one process and is not submitted; use `cluster_train`, or score on this machine "
            "with `clickmill infer`"
        )
        yield config.problem(message, ("runner", index, "class"))
    elif runner.is_cluster and not runner.is_collective:
        yield from server_problems(config, runner)


def _paddlecloud_runner(config: Config, backend: BackendConfig, runner: RunnerConfig) -> Iterator[Problem]:
    if runner.class_name == "infer":
        return  # told already: no kind of cluster would take it
    index = config.runner.index(runner)

    def problem(key: str, message: str) -> Problem:
        return config.problem(message, ("runner", index, key))

    is_card = is_single_card(backend, runner)
    if runner.class_name in {"train", "local_cluster_train"} and not is_card:
        message = f"`{runner.class_name}` would run on every node by itself; use `cluster_train`"
        yield problem("class", message)
    if is_card and backend.submit.k8s_trainers > 1:
        message = (
            f"`train` is one process, but `submit.k8s_trainers` is {backend.submit.k8s_trainers}; "
            "use `cluster_train` with `fleet_mode: collective`"
        )
        yield problem("class", message)
    is_collective = runner.fleet_mode == "collective"
    if backend.cluster_type == "mpi":
        remedy = f"use `cluster_type: k8s`, or {_ELSEWHERE}"
        if runner.device == "gpu":
            yield problem("device", f"MPI clusters of PaddleCloud have no cards; use `cpu`, or {remedy}")
        if is_collective:
            message = f"MPI clusters of PaddleCloud train with parameter servers; use `ps`, or {remedy}"
            yield problem("fleet_mode", message)
    elif is_collective and runner.device == "cpu":
        message = (
            "collective jobs of PaddleCloud are for cards; use `device: gpu`, or `fleet_mode: ps`. "
            f"clickmill itself trains collectively on CPUs too, with {_ELSEWHERE}"
        )
        yield problem("device", message)
    elif runner.device == "gpu" and not is_collective and not is_card:
        yield problem("device", PS_ON_CARDS)


def _empty(backend: BackendConfig, path: KeyPath, message: str) -> Iterator[Problem]:
    section, key = path
    value = getattr(getattr(backend, str(section)), str(key))
    if not (value.get_secret_value() if path in SECRETS else value):
        yield backend.problem(message, path)


def _paddlecloud(backend: BackendConfig) -> Iterator[Problem]:
    if backend.cluster_type is None:
        message = "is missing; PaddleCloud has clusters of the types `mpi` and `k8s`"
        yield backend.problem(message, ("cluster_type",))
    yield from _empty(
        backend,
        ("config", "fs_name"),
        "is empty, so the job has no file system; give it here, or by CLICKMILL_FS_NAME",
    )
    for path, variable in SECRETS.items():
        message = (
            f"is empty; give it by {variable}, or in a file that `{'.'.join(map(str, path))}_file` names"
        )
        yield from _empty(backend, path, message)
    yield from _empty(
        backend,
        ("submit", "files"),
        "is empty, so the nodes would have nothing to run; name files, for example `./*.py ./*.yaml`",
    )
    if backend.cluster_type == "mpi":
        yield from _empty(
            backend,
            ("config", "train_data_path"),
            "is empty, so the nodes would have no data; name a folder on the file system, which they will "
            f"see as `./train_data`, here, by {VARIABLES['config', 'train_data_path']} or by `--set`",
        )


def _paddlecloud_notes(config: Config, backend: BackendConfig) -> Iterator[Problem]:
    yield from _empty(
        backend, ("config", "output_path"), "is empty: nothing that the job writes is kept when it has ended"
    )
    if backend.cluster_type == "mpi":
        for name in ("test_data", "thirdparty"):
            message = f"is empty: the nodes will have nothing in `./{name}`"
            yield from _empty(backend, ("config", f"{name}_path"), message)
    if backend.cluster_type == "k8s":
        message = "is empty: nothing will be mounted; what it names is seen as `./afs`"
        yield from _empty(backend, ("config", "afs_remote_mount_point"), message)
    message = (
        f"is empty: nodes will install clickmill {clickmill.__version__} from their package index; name a "
        "wheel on this machine, which travels with the files, where that index does not have it"
    )
    yield from _empty(backend, ("config", "install"), message)
    message = "is empty: machines are given to groups; name yours"
    yield from _empty(backend, ("submit", "group"), message)
    if "use_python3" in backend.config.model_fields_set and not backend.config.use_python3:
        message = "asks for Python 2, on which clickmill does not run; Python 3 is asked for"
        yield backend.problem(message, ("config", "use_python3"))
    runner = config.runners()[0]
    is_one_card = backend.submit.k8s_trainers == 1 and backend.submit.k8s_gpu_card == 1
    if backend.cluster_type == "k8s" and runner.is_collective and is_one_card:
        place: KeyPath = ("runner", config.runner.index(runner), "class")
        yield config.problem("one worker with one card is what `class: train` is for", place)


def _idle_keys(backend: BackendConfig) -> Iterator[Problem]:
    """A key that is set to something and does nothing must not look as if it did."""
    if backend.config.output_path:
        message = (
            "has no effect here; `output_path` of the runner says where the job writes, and "
            "`save_checkpoint_path` where checkpoints go as well"
        )
        yield backend.problem(message, ("config", "output_path"))
    for key in _FOLDERS:
        if getattr(backend.config, key):
            message = "has no effect here; name the address in `data_path` of the data set"
            yield backend.problem(message, ("config", key))


def _idle_sizes(backend: BackendConfig) -> Iterator[Problem]:
    """Numbers of processes that are meant for another backend, where none is given for this one."""
    used: tuple[str, ...] = ("k8s_trainers", "k8s_ps_num")
    if backend.backend == "SSH":
        used = ()
    elif backend.backend == "MPI" or (backend.backend == "Local" and backend.cluster_type == "mpi"):
        used = ("nodes",)
    told = backend.submit.model_fields_set
    if told.intersection(used):
        return
    remedy = " and ".join(f"`{key}`" for key in used)
    words = f"the numbers come from {remedy}" if used else "each host has a server and a trainer"
    for key in ("nodes", "k8s_trainers", "k8s_ps_num"):
        if key in told:
            yield backend.problem(
                f"has no effect with `backend: {backend.backend}`: {words}", ("submit", key)
            )


def _idle_pod_keys(config: Config, backend: BackendConfig) -> Iterator[Problem]:
    """Keys of `kubernetes` that are for another kind of job, and of the runner that pods do not go by."""
    settings, runner = backend.kubernetes, config.runners()[0]
    is_collective = runner.is_collective
    if runner.output_path:
        message = (
            f"has no effect on Kubernetes: pods write to `{OUTPUT}/{backend.submit.name}`, on the volume of "
            "`kubernetes.output`; `config.output_path` names a place that takes checkpoints as well"
        )
        yield config.problem(message, ("runner", config.runner.index(runner), "output_path"))
    others = ("pserver", "trainer") if is_collective else ("worker",)
    for role in others:
        if role in settings.resources.model_fields_set:
            has = "`worker` alone" if is_collective else "`pserver` and `trainer`"
            message = f"has no effect: a job with `fleet_mode: {_fleet_mode(is_collective)}` has {has}"
            yield backend.problem(message, ("kubernetes", "resources", role))
    if settings.scheduler == "default" and "queue" in settings.model_fields_set:
        message = "has no effect with `scheduler: default`: queues are Volcano's"
        yield backend.problem(message, ("kubernetes", "queue"))


def _fleet_mode(is_collective: bool) -> str:
    return "collective" if is_collective else "ps"


def _cards(backend: BackendConfig, runner: RunnerConfig) -> Iterator[Problem]:
    has_cards = backend.backend == "Kubernetes" or (
        backend.backend == "PaddleCloud" and backend.cluster_type == "k8s"
    )
    if has_cards and runner.device == "gpu" and not backend.submit.k8s_gpu_card:
        message = "is 0, but `device: gpu` of the runner needs a card; ask for one, or use `device: cpu`"
        yield backend.problem(message, ("submit", "k8s_gpu_card"))


def _kubernetes(backend: BackendConfig) -> Iterator[Problem]:
    message = "is empty; name the image that pods run: deploy/docker builds one, or ask who runs the cluster"
    yield from _empty(backend, ("kubernetes", "image"), message)
    if len(backend.submit.name) > MAX_NAME_LENGTH:
        # Cut, the names of two jobs might be one, and each could be taken for the other.
        message = f"is `{backend.submit.name}` on Kubernetes, longer than {MAX_NAME_LENGTH}; shorten it"
        yield backend.problem(message, ("submit", "job_name"))
    yield from _places(backend)


def _places(backend: BackendConfig) -> Iterator[Problem]:
    """Pods reach by URLs what these keys name: each must come to one in a store that is known."""
    files = backend.config
    named = {key: folder for key in (*_FOLDERS, "output_path") if (folder := getattr(files, key))}
    on_it = [key for key, folder in named.items() if not is_url(folder) or names_no_host(folder)]
    for key, folder in named.items():
        if key not in on_it:
            yield from _fault(backend, fault_of(folder), ("config", key))
    if on_it:
        needs_scheme = next((key for key in on_it if not is_url(named[key])), None)
        yield from _fault(backend, _why_none(files.fs_name, on_it[0], needs_scheme), ("config", "fs_name"))


def _why_none(fs_name: str, key: str, needs_scheme: str | None) -> Fault | None:
    """Why there is no file system for the folder that `key` names; URLs of `needs_scheme` begin with it."""
    if not fs_name:
        return Fault(f"is empty, but `config.{key}` is a folder on it; give it, or set CLICKMILL_FS_NAME")
    if names_no_host(fs_name):
        return Fault(f"names no host, but `config.{key}` is a folder on it")
    if is_url(fs_name):
        return fault_of(fs_name)
    if needs_scheme is None:
        return None
    return Fault(
        f"does not say what it is, but `config.{needs_scheme}` is a folder on it; write `hdfs://` or "
        "`afs://` before the host"
    )


def _fault(backend: BackendConfig, fault: Fault | None, path: KeyPath) -> Iterator[Problem]:
    if fault is not None:
        yield replace(backend.problem(fault.message, path), suggestion=fault.suggestion)
