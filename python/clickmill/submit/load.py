"""A request from what is typed: both files are read, and what is wrong in either is told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill._section import known_keys
from clickmill.config import load_config
from clickmill.config.backend import BackendConfig, load_backend
from clickmill.config.backend.checks import backend_problems
from clickmill.errors import ConfigError
from clickmill.launch.role import Source
from clickmill.submit.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clickmill.config import Config


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
        config = load_config(model, overrides=of_config)
    except ConfigError as error:
        errors.append(error)
    try:
        backend = load_backend(backend_file, of_backend)
    except ConfigError as error:
        errors.append(error)
    if config is None or backend is None:
        more = [] if backend is None else backend_problems(backend)
        if (len(errors) == 1 and not more) or not all(error.problems for error in errors):
            raise errors[0]
        raise ConfigError.of([*(problem for error in errors for problem in error.problems), *more])
    return Request(config, backend, Source(model, tuple(of_config), tuple(talk)))


def split_overrides(overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those of backend.yaml, and those of config.yaml; the two have no key in common at the top."""
    top = known_keys(BackendConfig)
    of_backend: list[str] = []
    of_config: list[str] = []
    for text in overrides:
        first = text.partition("=")[0].strip().partition(".")[0].replace("-", "_")
        (of_backend if first in top else of_config).append(text)
    return of_backend, of_config
