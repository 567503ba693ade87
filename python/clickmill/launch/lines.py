"""Lines out of a stream of bytes, whatever the stream does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

MAX_LINE_BYTES = 1 << 20
"""A longer line is cut: a process that never ends its line must not fill our memory."""

_CHUNK_BYTES = 1 << 16


async def lines_of(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Every line without its end, also the last one that has none."""
    rest = b""
    while chunk := await stream.read(_CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > MAX_LINE_BYTES:
            yield rest
            rest = b""
    if rest:
        yield rest
