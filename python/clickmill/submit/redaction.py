"""Secrets taken out of what is written, shown or sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from clickmill.config.backend.secrets import SECRETS
from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MASK = "***"


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret as `***`; the longest first, for one may be part of another."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, MASK) if secret else text
    return text


def without_secrets(content: bytes, secrets: Iterable[str], path: Path) -> bytes:
    """A backend.yaml whose secrets are empty texts; all else stays as it was written.

    Raises ConfigError where a secret also stands elsewhere in the file.
    """
    text = content.decode("utf-8-sig")
    spans = {
        (node.start_mark.index, node.end_mark.index)
        for section, key in SECRETS
        for inner in _values(yaml.compose(text), str(section))
        for node in _values(inner, str(key))
        if node.value
    }
    for start, end in sorted(spans, reverse=True):
        text = f'{text[:start]}""{text[end:]}'
    for secret in secrets:
        if secret and secret in text:
            raise ConfigError(
                f"a secret stands in `{path}` in another place than its key, a comment perhaps; "
                "the job's files would carry it to the nodes",
                hint=f"take it out, or do not name `{path.name}` in `submit.files`",
            )
    return text.encode()


def _values(node: yaml.Node | None, key: str) -> list[yaml.Node]:
    """All values of a key, which may be written more than once."""
    if not isinstance(node, yaml.MappingNode):
        return []
    return [value for name, value in node.value if str(name.value).replace("-", "_") == key]
