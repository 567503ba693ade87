"""Secrets in addresses: a password before the host, a signature or token behind the question mark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*:[^/?#\s]+@")
_HTTP = re.compile(r"https?://[^\s]+", re.IGNORECASE)
_PARAMETER = re.compile(r"""[?&;]([^=?&;,"'\s]+)=([^&;,"'\s}\]]+)""")
_WORD = re.compile(r"[A-Z]*[a-z0-9]+|[A-Z]+")
_SECRET_WORD = re.compile(
    r"sig|sign|auth|pwd|jwt|hmac|sas|"
    r".*(signature|token|secret|password|passwd|credentials?|authorization|apikey|accesskey|authkey)"
)
_SECRET_KEY = re.compile(r"(access|api|auth|private|secret)[-_]?key", re.IGNORECASE)
_RANDOM = re.compile(r"[\w%+=-]{16,}")
"""No name of a file, which `?key=` may also give."""


def secret_in_address(text: str) -> str | None:
    """What an address in a text gives away, in words; None where there is nothing."""
    if _PASSWORD.search(text):
        return "a password"
    if any(_is_secret(name, value) for name, value in _parameters(text)):
        return "a signature or token"
    return None


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for address in _HTTP.findall(text):
        for name, value in _PARAMETER.findall(address):
            yield unquote(name), value


def _is_secret(name: str, value: str) -> bool:
    if name.lower() == "key":
        return _RANDOM.fullmatch(value) is not None
    words = (word.lower() for word in _WORD.findall(name))
    return bool(_SECRET_KEY.search(name)) or any(_SECRET_WORD.fullmatch(word) for word in words)
