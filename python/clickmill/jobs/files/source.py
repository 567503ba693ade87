"""The other side of `clickmill pod-files`: listings and pieces of files, though connections break."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from clickmill.errors import ClusterUnreachableError, DataError, FormatError, KubernetesError, NotFoundError
from clickmill.jobs.files.folder import FileEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clickmill.kube.proxy import PodAnswer

PIECE_BYTES = 8 << 20
"""That are asked for at once, and checked as one."""
DIGEST_HEADER = "X-Clickmill-Sha256"
_OK, _PARTIAL, _NOT_FOUND, _CONFLICT, _CHANGED = 200, 206, 404, 409, 412
_PATIENCE_S = 90.0
"""For a connection that breaks: an API server may be started again meanwhile."""
_LONGEST_PAUSE_S = 5.0
_MAX_DAMAGED = 3


class Channel(Protocol):
    """What can be asked for files: a pod behind a proxy."""

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> PodAnswer:
        """What it answers; KubernetesError where it could not be asked."""


class FileGoneError(DataError):
    """A file was removed or replaced between the listing and now."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files of a job."""

    channel: Channel
    tell: Callable[[str], None] = lambda _: None
    patience_s: float = _PATIENCE_S

    def listing(self, path: str = "") -> list[FileEntry]:
        """All files below `path`; NotFoundError where there is nothing of that name."""
        answer = self._ask("/files", params={"path": path})
        if answer.code == _NOT_FOUND:
            raise NotFoundError(f"there is no `{path}` in the output of the job", status=_NOT_FOUND)
        if answer.code != _OK:
            raise DataError(f"the output of the job cannot be listed: {answer.words}")
        return [FileEntry(**each) for each in json.loads(answer.content)["files"]]

    def piece(self, entry: FileEntry, start: int) -> bytes:
        """Bytes of a file from `start` on, checked by their digest; fewer than PIECE_BYTES at its end."""
        last = min(start + PIECE_BYTES, entry.num_bytes) - 1
        for _ in range(_MAX_DAMAGED):
            answer = self._file(entry, start, last)
            is_whole = len(answer.content) == last - start + 1
            if is_whole and hashlib.sha256(answer.content).hexdigest() == _digest(answer):
                return answer.content
            self.tell(f"`{entry.path}`: bytes from {start:,} on came damaged; asked for again")
        raise FormatError(
            f"`{entry.path}`: bytes from {start:,} on come damaged, each time that they are asked for",
            hint="something on the way changes them: a proxy, or the disk of the volume",
        )

    def digest(self, entry: FileEntry, start: int, num_bytes: int) -> str:
        """SHA-256 of so many bytes from `start` on, as they are on the volume."""
        return _digest(self._file(entry, start, start + num_bytes - 1, method="HEAD"))

    def content(self, entry: FileEntry) -> bytes:
        """All of a small file."""
        return b"".join(self.piece(entry, start) for start in range(0, entry.num_bytes, PIECE_BYTES))

    def _file(self, entry: FileEntry, start: int, last: int, *, method: str = "GET") -> PodAnswer:
        headers = {"Range": f"bytes={start}-{last}", "If-Match": f'"{entry.tag}"'}
        answer = self._ask("/file", method=method, params={"path": entry.path}, headers=headers)
        if answer.code in {_NOT_FOUND, _CHANGED}:
            verb = "removed" if answer.code == _NOT_FOUND else "replaced"
            raise FileGoneError(f"`{entry.path}` was {verb} while it was fetched")
        if answer.code != _PARTIAL:
            raise DataError(f"`{entry.path}` cannot be read: {answer.words}")
        return answer

    def _ask(self, path: str, **request: Any) -> PodAnswer:
        """Again and again, for a while, where the way is broken."""
        deadline = time.monotonic() + self.patience_s
        pause = 0.2
        while True:
            try:
                return self.channel.ask(path, **request)
            except (ClusterUnreachableError, KubernetesError) as error:
                is_passing = isinstance(error, ClusterUnreachableError) or (error.status or 0) >= 500
                if not is_passing or time.monotonic() > deadline:
                    raise
                if pause == 0.2:
                    self.tell(f"{error}; tries again for {self.patience_s:.0f} s")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _digest(answer: PodAnswer) -> str:
    return answer.headers.get(DIGEST_HEADER, "")
