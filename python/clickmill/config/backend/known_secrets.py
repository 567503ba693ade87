"""Secrets that this machine knows of a job, looked for in places that others can read."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from clickmill.config.backend.secrets import CREDENTIALS, SECRETS
from clickmill.config.document import dotted
from clickmill.errors import ConfigError
from clickmill.store.remote.access import secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from clickmill.config.backend.models import BackendConfig

MIN_LENGTH = 6
"""Shorter texts are parts of too many words to be looked for."""
MIN_PASSWORD_LENGTH = 8
"""Of the password in `user,password`, where it stands without the user."""


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """Names and values of secrets."""

    values: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """What each is called in messages, and what it is."""

    @classmethod
    def of(cls, backend: BackendConfig, environ: Mapping[str, str] | None = None) -> KnownSecrets:
        """What backend.yaml holds or names, and the credentials for stores in the environment."""
        return cls((*_of_backend(backend), *_of_environment(os.environ if environ is None else environ)))

    def with_values(self, name: str, values: Iterable[str]) -> KnownSecrets:
        """These and others, which have one name."""
        return KnownSecrets((*self.values, *((name, value) for value in values)))

    def find(self, content: bytes) -> tuple[int, str] | None:
        """Where the first one begins, and its name; as it is, or as JSON, URLs and base64 have it."""
        found = [
            (position, name)
            for name, value in self.values
            if len(value) >= MIN_LENGTH
            for form in _forms(value)
            if (position := content.find(form)) >= 0
        ]
        return min(found, default=None)


def _of_backend(backend: BackendConfig) -> Iterator[tuple[str, str]]:
    for section, key in SECRETS:
        name = str(dotted((section, key)))
        value = getattr(getattr(backend, str(section)), str(key)).get_secret_value()
        yield name, value
        password = value.partition(",")[2].strip()
        if key == "fs_ugi" and len(password) >= MIN_PASSWORD_LENGTH:
            yield f"the password of {name}", password


def _of_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in CREDENTIALS:
        try:
            value = secret(name, environ)
        except ConfigError:
            continue  # told where it is needed
        if value:
            yield name, value


def _forms(value: str) -> set[bytes]:
    content = value.encode()
    # What base64 makes of the end depends on what comes behind it.
    whole_groups = content[: len(content) // 3 * 3]
    return {
        content,
        json.dumps(value)[1:-1].encode(),
        json.dumps(value, ensure_ascii=False)[1:-1].encode(),
        quote(value, safe="").encode(),
        base64.b64encode(whole_groups),
    }
