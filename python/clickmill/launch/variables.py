"""Reading variables that go by several names, and saying all that is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from clickmill.errors import ConfigError, Problem
from clickmill.launch.address import Address, parse_address, parse_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


class Variables:
    """An environment under inspection: every reading that fails is noted, so that all are told at once.

    A name of ours comes first among the names of a thing. An empty variable counts as not set: launchers
    export names before they know the values.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._values = {name: value.strip() for name, value in environ.items() if value.strip()}
        self._problems: list[Problem] = []

    def name_of(self, *names: str) -> str | None:
        """The first of the names that is set."""
        return next((name for name in names if name in self._values), None)

    def read(self, parse: Callable[[str], T], *names: str) -> T | None:
        """The value under any of the names. Names that say different things are a problem."""
        found: tuple[str, T] | None = None
        for name in names:
            if name not in self._values:
                continue
            try:
                value = parse(self._values[name])
            except ValueError as error:
                self.wrong(name, str(error))
                continue
            if found is None:
                found = (name, value)
            elif found[1] != value:
                first = found[0]
                self.wrong(
                    name,
                    f"says `{self._values[name]}`, but `{first}` says `{self._values[first]}`; "
                    "unset one of them or make them equal",
                )
        return None if found is None else found[1]

    def text(self, *names: str) -> str | None:
        return self.read(str, *names)

    def count(self, *names: str, least: int = 0) -> int | None:
        return self.read(lambda text: _count(text, least), *names)

    def flag(self, *names: str) -> bool | None:
        return self.read(_flag, *names)

    def port(self, *names: str) -> int | None:
        return self.read(parse_port, *names)

    def addresses(self, *names: str, default_port: int | None = None) -> tuple[Address, ...]:
        """A list with commas between; nothing where it is not set."""
        return self.read(lambda text: _addresses(text, default_port), *names) or ()

    def with_prefix(self, *prefixes: str) -> dict[str, str]:
        """Variables whose name starts so."""
        return {name: value for name, value in self._values.items() if name.startswith(prefixes)}

    def wrong(self, name: str, message: str) -> None:
        """Note a problem with a variable."""
        self._problems.append(Problem(message, key=name, value=self._values.get(name)))

    def check(self, *, hint: str) -> None:
        """Raise ConfigError with everything that was noted, if anything was."""
        if self._problems:
            raise ConfigError.of(self._problems, hint=hint)


def _count(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"must be a whole number, not `{text}`")
    if int(text) < least:
        raise ValueError(f"must be {least} or more, not `{text}`")
    return int(text)


def _flag(text: str) -> bool:
    if text.lower() in {"1", "true"}:
        return True
    if text.lower() in {"0", "false"}:
        return False
    raise ValueError(f"must be 1 or 0, not `{text}`")


def _addresses(text: str, default_port: int | None) -> tuple[Address, ...]:
    found = tuple(parse_address(part, default_port=default_port) for part in text.split(",") if part.strip())
    if not found:
        raise ValueError("names no address")
    twice = next((address for index, address in enumerate(found) if address in found[:index]), None)
    if twice is not None:
        raise ValueError(f"names `{twice}` twice; every process needs an address of its own")
    return found
