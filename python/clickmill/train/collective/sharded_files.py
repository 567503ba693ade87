"""One file of a table whose rows several ranks hold: theirs are sent to rank 0 and joined there."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.ps.tables import Table
    from clickmill.train.collective.channel import Channel

_CHUNK_BYTES = 4 << 20


def receive_table(table: Table, path: Path, channel: Channel) -> str:
    """Write the rows of all ranks to `path`; the id of the save. The others call `send_table`."""
    parts = [path.with_name(f".{path.name}.{rank}.part") for rank in range(channel.world)]
    table.save(parts[0])
    for rank in range(1, channel.world):
        with parts[rank].open("wb") as file:
            for chunk in channel.receive_chunks(rank):
                file.write(chunk)
    report: dict[str, str] = json.loads(_core.join_saves(parts, path))
    for part in parts:
        part.unlink()
    return report["id"]


def send_table(table: Table, channel: Channel) -> None:
    """Send the rows of this rank to rank 0."""
    with tempfile.TemporaryDirectory(prefix="clickmill-") as folder:
        path = Path(folder) / "part.rows"
        table.save(path)
        channel.send_chunks(_chunks(path))


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
