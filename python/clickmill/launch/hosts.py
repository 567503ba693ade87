"""hosts.yaml: the machines of an ssh cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, ValidationError

from clickmill._section import Integer, PositiveCount, Section
from clickmill.config.document import dotted, read_document
from clickmill.config.translate import problems_of
from clickmill.errors import ConfigError, Problem
from clickmill.launch.address import MAX_PORT, Address, parse_address

if TYPE_CHECKING:
    from pathlib import Path


def _checked_host(text: str) -> str:
    split_host(text)
    return text


def split_host(text: str) -> tuple[str | None, Address]:
    """User, host and ssh port of `user@host[:port]`; port 0 where none is given. Raises ValueError."""
    user, at, rest = text.rpartition("@")
    if at and not user:
        raise ValueError(f"`{text}` names no user before `@`; the form is `user@host[:port]`")
    if text.startswith("-") or any(letter.isspace() for letter in text):
        raise ValueError(f"`{text}` is no host; the form is `user@host[:port]`")
    return user or None, parse_address(rest, default_port=0)


class HostsConfig(Section):
    """Machines that are reached with ssh, one parameter server and one trainer on each."""

    hosts: Annotated[tuple[Annotated[str, AfterValidator(_checked_host)], ...], Field(min_length=1)]
    """`user@host` or `user@host:port`, the port of its sshd; the first one is the coordinator's."""
    root_dir: str = "clickmill-jobs"
    """Folder on the hosts in which a folder for each job is made; a relative one lies in the user's home."""
    port: Annotated[Integer, Field(ge=0, le=MAX_PORT)] = 7164
    """Port of the parameter server on each host. 0: any that is free."""
    python: str = "python3"
    """Python on the hosts that has clickmill installed."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables for the processes on the hosts."""
    ssh_config: str = ""
    """Configuration file for ssh. Empty: the user's own."""
    connect_timeout_s: PositiveCount = 15
    """Seconds to wait for a host."""


def load_hosts(file: str | Path) -> HostsConfig:
    """Read hosts.yaml. Raises ConfigError with every problem and its line."""
    document = read_document(file)
    if not isinstance(document.value, dict):
        place = document.value_place(())
        raise ConfigError.of([place.problem("the top must be a mapping with the key `hosts`")])
    try:
        config = HostsConfig.model_validate(document.value)
    except ValidationError as error:
        raise ConfigError.of(problems_of(error, document, HostsConfig)) from None
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for index, text in enumerate(config.hosts):
        name = split_host(text)[1].host
        if name in seen:
            place = document.value_place(("hosts", index))
            message = f"host `{name}` is number {seen[name]} already"
            problems.append(place.problem(message, key=dotted(("hosts", index)), value=text))
        seen.setdefault(name, index)
    if problems:
        raise ConfigError.of(problems)
    return config
