"""What the containers of pods write, with the time of each line."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2

from clickmill.kube.errors import asking, check

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clickmill.kube.client import Cluster

_CONNECT_DEADLINE_S = 5.0
_DEADLINE_S = 30.0
_MAX_LINE_BYTES = 1 << 20
"""What is longer comes in pieces."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a container."""

    time: str
    """As the node that it ran on had it: `2026-01-31T08:15:30.123456789Z`."""
    text: str

    @property
    def moment(self) -> str:
        """`time` such that texts sort as moments do: nodes leave zeros at the end of fractions out."""
        head, _, fraction = self.time.removesuffix("Z").partition(".")
        return f"{head}.{fraction:0<9}"


@contextmanager
def pod_log(
    cluster: Cluster,
    pod: str,
    *,
    container: str | None = None,
    is_followed: bool = False,
    is_previous: bool = False,
    since: str | None = None,
    tail: int | None = None,
) -> Iterator[Iterator[LogLine]]:
    """Lines of a container, from the moment `since` on or the last `tail` of them.

    Followed until the container ends. `is_previous` asks for the one before the last restart. NotFoundError
    where there is no such pod, RefusedError where the container has not started, or there was none before it.
    """
    query = {
        "timestamps": "true",
        "container": container,
        "follow": "true" if is_followed else None,
        "previous": "true" if is_previous else None,
        "sinceTime": since,
        "tailLines": None if tail is None else str(tail),
    }
    request = cluster.http.build_request(
        "GET",
        f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/log",
        params={key: value for key, value in query.items() if value is not None},
        timeout=httpx2.Timeout(None if is_followed else _DEADLINE_S, connect=_CONNECT_DEADLINE_S),
    )
    what = f"read the log of pod `{pod}`"
    with asking(what, server=cluster.server):
        response = cluster.http.send(request, stream=True)
        try:
            check(what, response)
            yield (parse_line(line) for line in split_lines(response.iter_bytes()))
        finally:
            response.close()


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends; one that is too long in pieces."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        while len(rest) > _MAX_LINE_BYTES:
            yield rest[:_MAX_LINE_BYTES]
            rest = rest[_MAX_LINE_BYTES:]
    if rest:
        yield rest


def parse_line(line: bytes) -> LogLine:
    """A line as the API server gives it: time, a space, text."""
    time, _, text = line.decode(errors="replace").partition(" ")
    return LogLine(time, text.removesuffix("\r"))
