"""A host and a port, as they are written in variables, arguments and JSON lines."""

from __future__ import annotations

from typing import NamedTuple

MAX_PORT = 65535


class Address(NamedTuple):
    """Where a process listens; compared as a whole, never by parts of its text."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, default_port: int | None = None) -> Address:
    """`10.0.0.1:7164`, `name:7164`, `[::1]:7164`; a bare host where there is a default port.

    Raises ValueError with what is wrong.
    """
    text = text.strip()
    host, colon, port = text.rpartition(":")
    if text.startswith("[") and text.endswith("]"):
        host, colon, port = text, "", ""
    elif not colon:
        host, port = text, ""
    elif ":" in host and not host.startswith("["):
        raise ValueError(f"`{text}` must be of the form `host:port`; write IPv6 as `[::1]:7164`")
    host = host.removeprefix("[").removesuffix("]")
    if not host:
        raise ValueError(f"`{text}` names no host; the form is `host:port`")
    if not colon:
        if default_port is None:
            raise ValueError(f"`{text}` has no port; the form is `host:port`")
        return Address(host, default_port)
    return Address(host, parse_port(port))


def parse_port(text: str) -> int:
    """A port from 0, which lets the system choose. Raises ValueError."""
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_PORT):
        raise ValueError(f"`{text}` is no port; it must be a number from 0 to {MAX_PORT}")
    return int(text)
