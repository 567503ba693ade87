"""What the sections of backend.yaml share: keys without a value, secrets, words in any case."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SecretStr, model_validator

from clickmill._section import Section, known_keys
from clickmill.config.document import written_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class BackendSection(Section):
    """A section of backend.yaml: a key without a value counts as not written."""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = known_keys(cls)
        # One that nobody knows stays, to be told.
        return {
            key: item
            for key, item in value.items()
            if item is not None or cls.canonical_key(key) not in known
        }


def any_case(names: Mapping[str, str]) -> Callable[[Any], Any]:
    """Reads a word in any case as its name; `names` is by the word in lower case."""
    return lambda value: names.get(value.strip().lower(), value) if isinstance(value, str) else value


def _text(value: Any) -> Any:
    text = written_text(value)
    return value if text is None else text


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be one line of printable characters")
    return value


def _one_secret_line(value: SecretStr) -> SecretStr:
    _one_line(value.get_secret_value())
    return value


_QUANTITY = re.compile(r"\d+(\.\d+)?(m|[kMGTPE]|[KMGTPE]i)?")


def _quantity(value: str) -> str:
    if value and not _QUANTITY.fullmatch(value):
        raise ValueError(f"must be a quantity such as `500m`, `2` or `4Gi`, not `{value}`")
    return value


def _as_a_shell_splits(value: Any) -> Any:
    try:
        return tuple(shlex.split(value)) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError("has a quote that does not end") from error


Line = Annotated[str, AfterValidator(_one_line)]
"""Text that goes into files of lines and onto command lines."""
Secret = Annotated[SecretStr, BeforeValidator(_text), AfterValidator(_one_secret_line)]
"""Never shown: neither in messages nor where the configuration is printed."""
Quantity = Annotated[str, AfterValidator(_quantity)]
"""An amount as Kubernetes writes it. Empty: not said."""
Arguments = Annotated[tuple[str, ...], BeforeValidator(_as_a_shell_splits)]
"""Arguments in one text, with quotes around those that have spaces, or a list of them."""
