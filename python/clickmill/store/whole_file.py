"""Files that are read whole, as people name them: regular ones, but also pipes and devices."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PIECE_BYTES = 65_536


def read_whole(file: str | Path, *, max_bytes: int) -> bytes:
    """The content. Raises ValueError, which says why, where it cannot be read or is longer.

    Of a pipe (`/dev/stdin`, `<(command)`) what its writers write until all have closed it. One that nobody
    has open for writing is refused: to wait for a writer, as opening it does otherwise, may be for ever.
    """
    try:
        with open(file, "rb", buffering=0, opener=open_at_once) as stream:
            found = bytearray()
            if stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode):
                first = stream.read(_PIECE_BYTES)  # None where a writer has it open and has yet to write
                if first == b"":
                    raise ValueError("is a pipe that nobody writes to")
                found += first or b""
            os.set_blocking(stream.fileno(), True)
            while len(found) <= max_bytes and (piece := stream.read(_PIECE_BYTES)):
                found += piece
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    if len(found) > max_bytes:
        raise ValueError(f"has more than {max_bytes} bytes")
    return bytes(found)


def open_at_once(path: str, flags: int) -> int:
    """An `opener` that does not wait for somebody who writes to a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
