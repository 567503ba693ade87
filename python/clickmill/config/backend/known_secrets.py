"""Secrets that this machine knows of a job, looked for in places that others can read."""

from __future__ import annotations

import base64
import json
import os
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from clickmill.config.backend.secrets import CREDENTIALS, SECRETS
from clickmill.config.document import dotted, written_text
from clickmill.errors import ConfigError
from clickmill.store.remote.access import secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from clickmill.config.backend.models import BackendConfig
    from clickmill.config.document import Document, KeyPath
    from clickmill.errors import Problem

MIN_LENGTH = 6
"""Shorter texts are parts of too many words to be looked for."""
MIN_PASSWORD_LENGTH = 8
"""Of the password in `user,password`, where it stands without the user."""
_ESCAPE = re.compile("%[0-9A-F]{2}")
_FOR_URLS = bytes.maketrans(b"+/", b"-_")


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """Names and values of secrets."""

    values: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """What each is called in messages, and what it is."""

    @classmethod
    def of(cls, backend: BackendConfig, environ: Mapping[str, str] | None = None) -> KnownSecrets:
        """What backend.yaml holds or names, and the credentials for stores in the environment."""
        return cls((*_of_backend(backend), *_of_environment(os.environ if environ is None else environ)))

    @classmethod
    def of_document(cls, document: Document) -> KnownSecrets:
        """What a backend.yaml holds, also one in which something else is wrong."""
        values = {path: document.get(path) for path in SECRETS}
        return cls(
            tuple(
                named
                for path, value in values.items()
                if (text := written_text(value)) is not None
                for named in _named(path, text)
            )
        )

    def masked(self, problem: Problem) -> Problem:
        """The problem with `***` for every secret that it quotes."""
        secrets = sorted((value for _, value in self.values if len(value) >= MIN_LENGTH), key=len)
        for value in reversed(secrets):
            texts = (problem.message, problem.key, problem.value, problem.suggestion)
            if any(text and value in text for text in texts):
                message, key, shown, suggestion = (text and text.replace(value, "***") for text in texts)
                problem = replace(problem, message=message or "", key=key, value=shown, suggestion=suggestion)
        return problem

    def masked_bytes(self, content: bytes) -> bytes:
        """Words of another program with `***` for every secret, in every form that `find` knows.

        Short ones too, where they stand as words of their own.
        """
        return self.mask()(content)

    def mask(self) -> Callable[[bytes], bytes]:
        """`masked_bytes` for many texts: the forms are made once."""
        forms = {form for _, value in self.values for form in _forms(value) if value}
        ordered = sorted(forms, key=len, reverse=True)  # one may be part of another
        words = {
            form: re.compile(rb"(?<!\w)" + re.escape(form) + rb"(?!\w)")
            for form in ordered
            if len(form) < MIN_LENGTH
        }

        def masked(content: bytes) -> bytes:
            for form in ordered:
                if form not in words:
                    content = content.replace(form, b"***")
                elif form in content:
                    content = words[form].sub(b"***", content)
            return content

        return masked

    def with_environment(self) -> KnownSecrets:
        """These, and the credentials for stores in the environment."""
        return KnownSecrets((*self.values, *_of_environment(os.environ)))

    def with_values(self, name: str, values: Iterable[str]) -> KnownSecrets:
        """These and others, which have one name."""
        return KnownSecrets((*self.values, *((name, value) for value in values)))

    def find(self, content: bytes) -> tuple[int, str] | None:
        """Where the first one begins, and its name.

        As it is, in UTF-16, or as JSON, URLs, hexadecimal digits and base64 have it.
        """
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
        secret_value = getattr(getattr(backend, str(section)), str(key))
        yield from _named((section, key), secret_value.get_secret_value())


def _named(path: KeyPath, value: str) -> Iterator[tuple[str, str]]:
    name = str(dotted(path))
    yield name, value
    if path[-1] == "fs_ugi" and len(password := password_of(value)) >= MIN_PASSWORD_LENGTH:
        yield f"the password of {name}", password


def password_of(fs_ugi: str) -> str:
    """What stands behind the user in `user,password`."""
    return fs_ugi.partition(",")[2].strip()


def _of_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in CREDENTIALS:
        try:
            value = secret(name, environ)
        except ConfigError:
            continue  # told where it is needed
        if value:
            yield name, value


def _forms(value: str) -> set[bytes]:
    # A file that is searched may have made halves of characters with an escape.
    content = value.encode(errors="surrogatepass")
    escaped = {quote(content, safe=""), quote(content), quote_plus(content)}
    return {
        content,
        value.encode("utf-16-le", "surrogatepass"),
        value.encode("utf-16-be", "surrogatepass"),
        json.dumps(value)[1:-1].encode(),
        json.dumps(value, ensure_ascii=False)[1:-1].encode(errors="surrogatepass"),
        *(text.encode() for text in escaped),
        *(_ESCAPE.sub(lambda found: found[0].lower(), text).encode() for text in escaped),
        content.hex().encode(),
        content.hex().upper().encode(),
        *_in_base64(content),
    }


def _in_base64(content: bytes) -> Iterator[bytes]:
    """The characters that come of it alone, for each place in a group of three bytes at which it may begin.

    The first and the last may also have bits of what stands around it; they are left out.
    """
    for num_before in range(3):
        first, end = -(-num_before * 8 // 6), (num_before + len(content)) * 8 // 6
        encoded = base64.b64encode(bytes(num_before) + content)[first:end]
        yield encoded
        yield encoded.translate(_FOR_URLS)
