"""Secrets in places of a job that others can read: variables, and values of both files."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clickmill.config.backend.addresses import secret_in_address
from clickmill.config.backend.known_secrets import KnownSecrets
from clickmill.config.backend.secrets import CREDENTIALS, SECRETS
from clickmill.config.document import Place
from clickmill.config.overrides import override_place
from clickmill.store.remote.access import HTTP_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clickmill.config.backend.models import BackendConfig
    from clickmill.config.config import Config
    from clickmill.config.document import KeyPath
    from clickmill.errors import Problem

_ENV: KeyPath = ("kubernetes", "env")
_OF_ACCESS = frozenset({SECRETS["config", "fs_ugi"], *CREDENTIALS} - {"CLICKMILL_TOKEN"})
"""Variables that `submit` puts into the Secret of a job."""
_LIKE_A_SECRET = re.compile(r".*(_|^)(TOKEN|SECRET|PASSWORD|PASSWD|KEY)", re.IGNORECASE)
_TRAVELS = frozenset({"Kubernetes", "PaddleCloud"})
"""Backends at which others can read the configuration of a job."""


def exposed_secrets(
    backend: BackendConfig, config: Config | None = None, overrides: Sequence[str] = ()
) -> Iterator[Problem]:
    """Why others could read a secret of the job; none repeats it.

    `overrides` are those of config.yaml: processes are started with the texts themselves, comments included,
    also with one that a later one undoes.
    """
    known = KnownSecrets.of(backend)
    for problem in _problems(backend, config, overrides, known):
        # A path that was typed, or a key, may be where the secret is.
        is_typed = (problem.file or "").startswith("--set ")
        file = "--set" if is_typed and known.find((problem.file or "").encode()) else problem.file
        key = None if known.find((problem.key or "").encode()) else problem.key
        yield replace(problem, file=file, key=key)


def _problems(
    backend: BackendConfig, config: Config | None, overrides: Sequence[str], known: KnownSecrets
) -> Iterator[Problem]:
    named = set()
    for name in backend.kubernetes.env:
        if name in SECRETS.values() or name in CREDENTIALS:
            named.add((*_ENV, name))
            yield backend.problem(_of_variable(name), (*_ENV, name))
    for path, text in _texts(backend.model_dump(by_alias=True)):
        if path in named:
            continue
        if what := secret_in_address(text):
            yield backend.problem(_of_address(what, path), path)
        elif found := known.find(text.encode()):
            message = (
                f"holds a secret ({found[1]}), by an alias perhaps, which others could read here; write the "
                "value that is meant, or leave it out"
            )
            yield backend.problem(message, path)
    told = set()
    if config is not None and backend.backend in _TRAVELS:
        for path, text in _texts(config.model_dump(by_alias=True)):
            if words := _of_text(text, known):
                problem = config.problem(words, path)
                told.add(problem.file)
                yield problem
    for text in overrides:
        place = override_place(text)
        words = _of_text(text, known, with_addresses=backend.backend in _TRAVELS)
        if words and place.file not in told:
            yield place.problem(words)


def exposed_variables(backend: BackendConfig, variables: Mapping[str, str]) -> Iterator[Problem]:
    """The same of variables of this machine that pods are given as they are."""
    known = KnownSecrets.of(backend)
    for name, text in variables.items():
        if words := _of_text(text, known):
            yield Place(name).problem(words)


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


def _of_text(text: str, known: KnownSecrets, *, with_addresses: bool = True) -> str | None:
    """What is wrong with a text that others can read."""
    what = secret_in_address(text) if with_addresses else None
    if what:
        return _of_address(what)
    found = known.find(text.encode())
    return f"holds a secret ({found[1]}), which others could read; take it out" if found else None


def _of_address(what: str, path: KeyPath = ()) -> str:
    words = f"has {what} in an address, which others could read; take it out"
    if path == ("config", "install"):
        return f"{words}, and name a wheel on this machine, which travels with the files"
    if path[:1] == ("config",) and what == "a password":
        return f"{words}, and give `user,password` by {SECRETS['config', 'fs_ugi']} or `config.fs_ugi_file`"
    return (
        f"{words}, and give {HTTP_TOKEN}, the keys of S3 or {SECRETS['config', 'fs_ugi']} where you type "
        "`clickmill submit`, or read from a volume"
    )


def _texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """All texts in a configuration, keys included, with their places; secrets are no texts."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield path, str(key)  # told at the place around it, for the place itself would repeat it
            yield from _texts(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
