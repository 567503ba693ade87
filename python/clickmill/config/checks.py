"""Checks across sections: names that must exist, and combinations that cannot run.

`cross_check` looks at the plain values, so that its problems are reported together with everything else that
is wrong. `run_problems` looks at what `mode` would run: a file may hold runners for other machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.config.builtin import BUILTIN_MODELS, builtin_model
from clickmill.config.dataset import DatasetConfig
from clickmill.config.document import Document, KeyPath, dotted
from clickmill.config.runner import RunnerConfig
from clickmill.config.translate import listed, nearest
from clickmill.config.urls import URL_KEYS
from clickmill.store.remote.url import fault_of, is_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill._section import Section
    from clickmill.config.config import Config
    from clickmill.errors import Problem

_ONE_PHASE = "a cluster trains one phase, not {}; name the one in `phases`, each has a run of its own"
_CLUSTER = ("local_cluster_train", "cluster_train")
PS_ON_CARDS = (
    "parameter servers train on `cpu`; use `device: cpu`, or `fleet_mode: collective` on machines with cards "
    "(those of PaddleCloud are in clusters of `cluster_type: k8s`)"
)


def cross_check(document: Document) -> list[Problem]:
    """All problems that no section can see alone."""
    if not isinstance(document.value, dict):
        return []
    checks = (_names_are_unique, _modes, _runner_references, _phases, _clusters, _stores)
    return [problem for check in checks for problem in check(document)]


def run_problems(config: Config) -> list[Problem]:
    """Why the runners that `mode` names cannot run here, all of them; empty where they can."""
    problems = []
    for index, runner in enumerate(config.runner):
        if runner.name not in config.mode:
            continue
        if runner.class_name == "cluster_train" and len(config.mode) > 1:
            message = (
                "`cluster_train` makes this process one of a cluster; it must be the only runner of `mode`"
            )
            problems.append(config.problem(message, ("runner", index, "class")))
        if runner.is_cluster and not runner.is_collective:
            problems.extend(server_problems(config, runner))
        is_started_here = runner.is_collective and runner.class_name != "cluster_train"
        if is_started_here and runner.worker_num not in {1, runner.num_ranks}:
            names = "names 1 card" if runner.num_ranks == 1 else f"names {runner.num_ranks} cards"
            message = (
                f"is {runner.worker_num}, but `selected_gpus` {names}, and each card has one process; name "
                f"{runner.worker_num} cards there, or give {runner.num_ranks} here"
            )
            problems.append(config.problem(message, ("runner", index, "worker_num")))
        for key in _LOCAL_PATHS:
            if is_url(getattr(runner, key)):
                message = "is a URL, and must be a path of this host; `save_checkpoint_path` may be a URL"
                problems.append(config.problem(message, ("runner", index, key)))
        if runner.class_name == "infer" and not runner.init_model_path:
            message = "`infer` needs `init_model_path`, a checkpoint"
            problems.append(config.problem(message, ("runner", index, "class")))
    return problems


_LOCAL_PATHS = ("output_path", "tensorboard_path", "runner_result_dump_path")
_WITH_URLS: dict[str, type[Section]] = {"runner": RunnerConfig, "dataset": DatasetConfig}
_NOT_ON_SERVERS = {
    "save_step_full_interval": "checkpoints of a cluster with parameter servers hold all rows; "
    "`cluster.snapshot_full_interval` is what its snapshots go by",
}
"""Keys that would be passed over in silence otherwise."""


def server_problems(config: Config, runner: RunnerConfig) -> list[Problem]:
    """Why a runner cannot be trained with parameter servers, whatever its class."""
    index = config.runner.index(runner)

    def problem(key: str, message: str) -> Problem:
        return config.problem(message, ("runner", index, key))

    problems = [
        problem(key, message)
        for key, message in _NOT_ON_SERVERS.items()
        if getattr(runner, key) != type(runner).model_fields[key].default
    ]
    if runner.clip_norm is not None and runner.distribute_strategy == "sync" and runner.worker_num > 1:
        message = (
            f"the joint batch of {runner.worker_num} trainers in `sync` has a norm that no one of them "
            "knows; use one trainer, or a strategy in which each trainer clips its own batch "
            "(`async`, `half_async`, `hybrid`)"
        )
        problems.append(problem("clip_norm", message))
    phases = config.phases_of(runner)
    if len(phases) > 1:
        problems.append(problem("phases", _ONE_PHASE.format(len(phases))))
    if runner.device == "gpu":
        problems.append(problem("device", PS_ON_CARDS))
    return problems


def _items(document: Document, section: str) -> list[tuple[KeyPath, dict[str, Any]]]:
    items = document.get((section,))
    if not isinstance(items, list):
        return []
    return [((section, index), item) for index, item in enumerate(items) if isinstance(item, dict)]


def _names(document: Document, section: str) -> list[str]:
    return [str(item["name"]) for _, item in _items(document, section) if "name" in item]


def _texts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value in (None, "") else [value]


def _unknown(document: Document, path: KeyPath, section: str, name: object) -> Iterator[Problem]:
    names = _names(document, section)
    if str(name) in names:
        return
    message = f"there is no {section} `{name}`; known: {listed(names) or 'none'}"
    place = document.value_place(path)
    yield place.problem(message, key=dotted(path), value=str(name), suggestion=nearest(name, names))


def _references(document: Document, path: KeyPath, section: str) -> Iterator[Problem]:
    value = document.get(path)
    for index, name in enumerate(_texts(value)):
        yield from _unknown(document, (*path, index) if isinstance(value, list) else path, section, name)


def _names_are_unique(document: Document) -> Iterator[Problem]:
    for section in ("runner", "dataset", "phase"):
        first: dict[str, int | None] = {}
        for path, item in _items(document, section):
            name, place = str(item.get("name")), document.value_place((*path, "name"))
            if "name" in item and name in first:
                message = f"a {section} of this name is in line {first[name]} already"
                yield place.problem(message, key=dotted((*path, "name")), value=name)
            first.setdefault(name, place.line)


def _modes(document: Document) -> Iterator[Problem]:
    yield from _references(document, ("mode",), "runner")


def _runner_references(document: Document) -> Iterator[Problem]:
    for path, runner in _items(document, "runner"):
        yield from _references(document, (*path, "phases"), "phase")
        if runner.get("evaluate_dataset_name"):
            yield from _references(document, (*path, "evaluate_dataset_name"), "dataset")


def _phases(document: Document) -> Iterator[Problem]:
    for path, phase in _items(document, "phase"):
        yield from _references(document, (*path, "dataset_name"), "dataset")
        model = phase.get("model")
        if isinstance(model, str) and not model.endswith(".py") and builtin_model(model) is None:
            message = (
                f"is neither a built-in model nor a `.py` file; built in: {listed(list(BUILTIN_MODELS))}"
            )
            place = document.value_place((*path, "model"))
            suggestion = nearest(model.rpartition(".")[2], list(BUILTIN_MODELS))
            yield place.problem(message, key=dotted((*path, "model")), value=model, suggestion=suggestion)


def _clusters(document: Document) -> Iterator[Problem]:
    for path, runner in _items(document, "runner"):
        is_cluster = runner.get("class") in _CLUSTER
        is_gpu = runner.get("device") == "gpu"
        mode = runner.get("fleet_mode", "ps")
        if mode != "collective" and is_gpu and is_cluster:
            yield _wrong(document, (*path, "device"), PS_ON_CARDS)
        if runner.get("class") == "infer" and (_more(runner, "worker_num") or _more(runner, "server_num")):
            yield _wrong(
                document, (*path, "class"), "`infer` runs in one process; leave out worker_num and server_num"
            )
        phases = _texts(runner.get("phases")) or _names(document, "phase")
        if is_cluster and len(phases) > 1:
            place = (*path, "phases") if "phases" in runner else path
            yield _wrong(document, place, _ONE_PHASE.format(len(phases)))
        if mode == "collective":
            yield from _queue_datasets(document, path, {str(phase) for phase in phases})


def _queue_datasets(document: Document, path: KeyPath, phases: set[str]) -> Iterator[Problem]:
    used = {
        str(item.get("dataset_name"))
        for _, item in _items(document, "phase")
        if str(item.get("name")) in phases
    }
    for _, dataset in _items(document, "dataset"):
        if str(dataset.get("name")) in used and dataset.get("type") == "QueueDataset":
            message = f"`collective` takes no QueueDataset; make data set `{dataset['name']}` a DataLoader"
            yield _wrong(document, (*path, "fleet_mode"), message)


def _stores(document: Document) -> Iterator[Problem]:
    """URLs that mean nothing; they are looked at by their words alone, no store is asked."""
    for name, section in _WITH_URLS.items():
        for path, item in _items(document, name):
            validation = item.get("validation")
            if name == "dataset" and isinstance(validation, dict):
                yield from _faults(document, (*path, "validation", "data_path"))
            for key in item:
                if section.canonical_key(key) in URL_KEYS:
                    yield from _faults(document, (*path, key))


def _faults(document: Document, path: KeyPath) -> Iterator[Problem]:
    value = document.get(path)
    for index, text in enumerate(_texts(value)):
        if isinstance(text, str) and is_url(text) and (fault := fault_of(text)):
            where = (*path, index) if isinstance(value, list) else path
            place = document.value_place(where)
            yield place.problem(fault.message, key=dotted(where), suggestion=fault.suggestion)


def _more(runner: dict[str, Any], key: str) -> bool:
    value = runner.get(key)
    return isinstance(value, int) and value > 1


def _wrong(document: Document, path: KeyPath, message: str) -> Problem:
    return document.value_place(path).problem(message, key=dotted(path))
