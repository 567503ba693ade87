"""A look into files elsewhere that are not here: their first bytes, or any."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

from clickmill.store.remote.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import WriteableBuffer

    from clickmill.store.remote.store import RemoteFile

_HEAD_BYTES = 4
_HEADS_AT_ONCE = 16


@lru_cache(maxsize=1 << 16)
def head_of(file: RemoteFile) -> bytes:
    """Its first four bytes, or all that it has."""
    return b"".join(open_store(file.place).read(file, 0, min(_HEAD_BYTES, file.num_bytes)))


def heads_of(files: Sequence[RemoteFile]) -> list[bytes]:
    """First bytes of many files, several at a time: each takes a way there and back."""
    with ThreadPoolExecutor(_HEADS_AT_ONCE, thread_name_prefix="head") as pool:
        return list(pool.map(head_of, files))


class RangeReader(io.RawIOBase):
    """A file elsewhere as a file object that seeks; every read is a request, so wrap it in a buffer."""

    def __init__(self, file: RemoteFile) -> None:
        super().__init__()
        self._file = file
        self._store = open_store(file.place)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.num_bytes}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        end = min(self._at + len(view), self._file.num_bytes)
        count = max(end - self._at, 0)
        if count:
            view[:count] = b"".join(self._store.read(self._file, self._at, end))
            self._at = end
        return count
