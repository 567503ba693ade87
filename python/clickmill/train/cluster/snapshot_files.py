"""Files of snapshots as a trainer reads them: where servers have written them, or over the wire.

Where all processes see one file system they are simply there. In pods without a shared volume every server
keeps its parts for itself, and whoever makes a checkpoint of them asks for what it does not see.
"""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from clickmill import _core
from clickmill.errors import WireError
from clickmill.ps.wire import settings_json
from clickmill.store.durable import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Message = dict[str, Any]

COMMIT_FILE = "committed.json"
"""What the last snapshot holds beside parameters; the coordinator writes it."""
_MAX_EDITIONS = 20


@dataclass(frozen=True)
class Servers:
    """How the servers of the cluster are asked."""

    wire: Message
    coordinator: str
    addresses: Callable[[], list[str]]
    """By index, as they are now."""

    def fetch(self, address: str, name: str, path: Path) -> None:
        """Copy a file of a server's snapshots to `path`; WireError where it cannot be had whole."""
        link = _core.ControlLink(settings_json(self.wire), address)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path), path.open("wb") as file:
            for _ in range(_MAX_EDITIONS):
                if self._copy(link, name, file):
                    return
        raise WireError(f"`{name}` of {address} was written anew each of {_MAX_EDITIONS} times it was read")

    def _copy(self, link: _core.ControlLink, name: str, file: BinaryIO) -> bool:
        """Whether it was the same file from its first piece to its last, and not replaced meanwhile."""
        file.seek(0)
        file.truncate()
        edition = None
        while True:
            request = json.dumps({"file": {"name": name, "offset": file.tell()}})
            answer = json.loads(link.ask(request, self.wire["deadline_ms"]))
            edition = edition or answer["edition"]
            if answer["edition"] != edition:
                return False
            file.write(base64.b64decode(answer["bytes"]))
            if not answer["bytes"] or file.tell() >= answer["size"]:
                return bool(file.tell() == answer["size"])


class SnapshotFiles:
    """The folder of the snapshots, or what stands for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: Servers | None = None

    def find(self, told: Path, servers: Servers) -> None:
        """Where the coordinator has them; on another host the run's folder may be elsewhere."""
        self._servers = servers
        if told.is_dir():
            self._folder = told

    def commit(self) -> Message:
        """What the coordinator has committed."""
        with self._folder_of([(COMMIT_FILE, None, None)]) as folder:
            content: Message = json.loads((folder / COMMIT_FILE).read_text(encoding="utf-8"))["content"]
        return content

    @contextmanager
    def holding(self, snapshot: Message) -> Iterator[Path]:
        """A folder in which all files of a snapshot lie, for as long as the block lasts."""
        files = [file for layer in snapshot["layers"] for file in layer["files"]]
        wanted = [(file["name"], int(file["server"]), int(file["bytes"])) for file in files]
        with self._folder_of(wanted) as folder:
            yield folder

    @contextmanager
    def _folder_of(self, wanted: Sequence[tuple[str, int | None, int | None]]) -> Iterator[Path]:
        """Files are given by name, server (None: the coordinator) and size (None: any)."""
        missing = [each for each in wanted if not _is_there(self._folder / each[0], each[2])]
        if not missing or self._servers is None:
            yield self._folder
            return
        with writing(self._folder.parent):
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix=".fetched.partial-", dir=self._folder.parent))
        try:
            for name, server, size in wanted:
                if not _is_there(self._folder / name, size):
                    address = self._servers.coordinator
                    if server is not None:
                        address = self._servers.addresses()[server]
                    self._servers.fetch(address, name, place / name)
                else:
                    (place / name).parent.mkdir(parents=True, exist_ok=True)
                    (place / name).symlink_to((self._folder / name).resolve())
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _is_there(path: Path, size: int | None) -> bool:
    return path.is_file() and (size is None or path.stat().st_size == size)
