"""A request from what is typed: both files are read, and what is wrong in either is told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill._section import known_keys
from clickmill.config import Config, load_config
from clickmill.config.backend import BackendConfig, load_backend, secrets_in
from clickmill.config.backend.checks import backend_problems
from clickmill.config.backend.known_secrets import KnownSecrets
from clickmill.config.translate import nearest
from clickmill.errors import ConfigError
from clickmill.launch.role import Source
from clickmill.submit.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def load_request(
    model: str, backend_file: str | Path, overrides: Sequence[str] = (), talk: Sequence[str] = ()
) -> Request:
    """The job of a config.yaml and a backend.yaml; `--set` changes either, by the first word of its path.

    Raises ConfigError with every problem of both.
    """
    of_backend, of_config = split_overrides(overrides)
    errors: list[ConfigError] = []
    config: Config | None = None
    backend: BackendConfig | None = None
    try:
        backend = load_backend(backend_file, of_backend)  # first, for its secrets; a pipe is read only once
    except ConfigError as error:
        errors.append(error)
    try:
        config = load_config(model, overrides=of_config)
    except ConfigError as error:
        known = secrets_in(backend_file) if backend is None else KnownSecrets.of(backend)
        problems = [known.masked(problem) for problem in error.problems]
        errors.insert(0, ConfigError.of(problems, hint=error.hint) if problems else error)
    if config is None or backend is None:
        more = [] if backend is None else backend_problems(backend)
        if (len(errors) == 1 and not more) or not all(error.problems for error in errors):
            raise next((error for error in errors if not error.problems), errors[0])  # no file: told alone
        hints = dict.fromkeys(error.hint for error in errors if error.hint)
        problems = [problem for error in errors for problem in error.problems]
        raise ConfigError.of([*problems, *more], hint="; ".join(hints) or None)
    config, changes = _as_cluster(config, backend)
    return Request(config, backend, Source(model, (*of_config, *changes), tuple(talk)))


def _as_cluster(config: Config, backend: BackendConfig) -> tuple[Config, list[str]]:
    """The configuration with the runner as the backend trains it, and what tells processes so.

    `class: train` is one process. A backend that was told of several, or always has them, trains the runner
    as `cluster_train` does; PaddleCloud refuses it.
    """
    runner = config.runners()[0]
    if runner.class_name != "train" or runner.is_cluster or not _has_several(backend) or len(config.mode) > 1:
        return config, []
    index = config.runner.index(runner)
    changed = runner.model_copy(update={"class_name": "cluster_train"})
    runners = (*config.runner[:index], changed, *config.runner[index + 1 :])
    return config.model_copy(update={"runner": runners}), [f"runner.{index}.class=cluster_train"]


def _has_several(backend: BackendConfig) -> bool:
    if backend.backend == "Local":
        sizes = {"nodes"} if backend.cluster_type == "mpi" else {"k8s_trainers", "k8s_ps_num"}
        return bool(sizes & backend.submit.model_fields_set)
    return backend.backend != "PaddleCloud"


def split_overrides(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those of backend.yaml, and those of config.yaml; the two have no key in common at the top.

    A word that neither has goes where one is most like it, to be told so.
    """
    top, others = known_keys(BackendConfig), known_keys(Config)
    of_backend: list[str] = []
    of_config: list[str] = []
    for text in overrides:
        first = text.partition("=")[0].strip().partition(".")[0].replace("-", "_")
        meant = first if first in (*top, *others) else nearest(first, (*top, *others))
        (of_backend if meant in top else of_config).append(text)
    return of_backend, of_config
