"""Secrets in places of a job that others can read: variables of pods, and values that are no secrets."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clickmill.config.backend.known_secrets import KnownSecrets
from clickmill.config.backend.secrets import CREDENTIALS, SECRETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config.backend.models import BackendConfig
    from clickmill.config.config import Config
    from clickmill.config.document import KeyPath
    from clickmill.errors import Problem

_ENV: KeyPath = ("kubernetes", "env")
_OF_ACCESS = frozenset({SECRETS["config", "fs_ugi"], *CREDENTIALS} - {"CLICKMILL_TOKEN"})
"""Variables that `submit` puts into the Secret of a job."""
_LIKE_A_SECRET = re.compile(r".*(_|^)(TOKEN|SECRET|PASSWORD|PASSWD|KEY)", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*:[^/?#\s]+@")
_TRAVELS = frozenset({"Kubernetes", "PaddleCloud"})
"""Backends at which others can read the configuration of a job."""


def exposed_secrets(backend: BackendConfig, config: Config | None = None) -> Iterator[Problem]:
    """Why others could read a secret of the job; none repeats it."""
    for problem in _problems(backend, config):
        # The place of what was typed is the text itself.
        is_typed = (problem.file or "").startswith("--set ")
        yield replace(problem, file=f"--set {problem.key}=***") if is_typed else problem


def _problems(backend: BackendConfig, config: Config | None) -> Iterator[Problem]:
    named = set()
    for name in backend.kubernetes.env:
        if name in SECRETS.values() or name in CREDENTIALS:
            named.add((*_ENV, name))
            yield backend.problem(_of_variable(name), (*_ENV, name))
    known = KnownSecrets.of(backend)
    for path, text in _texts(backend.model_dump(by_alias=True)):
        if path in named:
            continue
        if _URL_PASSWORD.search(text):
            yield backend.problem(_of_address(path), path)
        elif found := known.find(text.encode()):
            message = (
                f"holds a secret ({found[1]}), by an alias perhaps, which others could read here; write the "
                "value that is meant, or leave it out"
            )
            yield backend.problem(message, path)
    if config is not None and backend.backend in _TRAVELS:
        for path, text in _texts(config.model_dump(by_alias=True)):
            if _URL_PASSWORD.search(text):
                yield config.problem(_of_address(()), path)


def notes_on_variables(backend: BackendConfig) -> Iterator[Problem]:
    """Variables of pods that have the name of a secret which we do not know."""
    for name in backend.kubernetes.env:
        if name not in SECRETS.values() and name not in CREDENTIALS and _LIKE_A_SECRET.fullmatch(name):
            message = (
                "has the name of a secret, and everybody who may look at the job can read it; mount a file "
                "with it by `kubernetes.volumes`, and name that file here"
            )
            yield backend.problem(message, (*_ENV, name))


def _of_variable(name: str) -> str:
    words = "is a secret, and everybody who may look at the job could read it; take it out"
    if name in _OF_ACCESS:
        return f"{words} and set {name} where you type `clickmill submit`: it travels in a Secret"
    if name == "CLICKMILL_TOKEN":
        return f"{words}: every job has a token of its own, in a Secret"
    return f"{words}: pods do not need it"


def _of_address(path: KeyPath) -> str:
    words = "has a password in an address, which others could read; take it out"
    if path == ("config", "install"):
        return f"{words}, and name a wheel on this machine, which travels with the files"
    if path[:1] != ("config",):
        return f"{words}, and give credentials by the variables of docs/guides/remote-data.md"
    return f"{words}, and give `user,password` by {SECRETS['config', 'fs_ugi']} or `config.fs_ugi_file`"


def _texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """All texts in a configuration, with their places; secrets are no texts."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
