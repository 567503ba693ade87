"""Hyper-parameters, read by name, type and range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Hyper:
    """`hyper_parameters` of a configuration; each method reads one key, or gives its default.

    Keys that a model does not read are not errors: the section is shared with the optimizer.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def integer(self, name: str, default: int, *, minimum: int = 1) -> int:
        """A whole number."""
        value = self._values.get(name, default)
        if not _is_integer(value) or value < minimum:
            raise _wrong(name, value, f"a whole number, {minimum} or more")
        return int(value)

    def number(self, name: str, default: float, *, minimum: float = 0.0, below: float | None = None) -> float:
        """A number of at least `minimum` and, where given, less than `below`."""
        value = self._values.get(name, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not value >= minimum or (below is not None and value >= below):
            end = "or more" if below is None else f"to less than {below}"
            hint = "YAML reads `1e-3` as text; write `1.0e-3`" if isinstance(value, str) else None
            raise _wrong(name, value, f"a number, {minimum} {end}", hint=hint)
        return float(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise _wrong(name, value, "true or false")
        return value

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """One of `choices`."""
        value = self._values.get(name, default)
        if value not in choices:
            raise _wrong(name, value, "one of " + ", ".join(choices))
        return str(value)

    def sizes(self, name: str, default: Sequence[int]) -> tuple[int, ...]:
        """A list of layer sizes; it may be empty."""
        value = self._values.get(name, default)
        if not isinstance(value, list | tuple) or not all(_is_integer(size) and size > 0 for size in value):
            raise _wrong(name, value, "a list of positive whole numbers, such as [512, 256, 128, 32]")
        return tuple(value)

    def names(self, name: str, default: Sequence[str]) -> tuple[str, ...]:
        """A list of slot names, or a text with blanks between them, as in `sparse_slots`."""
        value = self._values.get(name, default)
        if isinstance(value, str):
            return tuple(value.split())
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise _wrong(name, value, "slot names: a list, or a text with blanks between them")
        return tuple(value)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _wrong(name: str, value: object, allowed: str, *, hint: str | None = None) -> ConfigError:
    key, words = f"hyper_parameters.{name}", f"is {value!r}; allowed: {allowed}"
    return ConfigError(f"{key} {words}", hint=hint, problems=[Problem(words, key=key)])
