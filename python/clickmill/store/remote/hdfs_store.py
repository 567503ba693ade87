"""HDFS, also under the name `afs`; needs the extra `hdfs`.

The user is the first word of CLICKMILL_FS_UGI (`user,password`), else HADOOP_USER_NAME, else that of the
process. Where HADOOP_CONF_DIR is set, the client reads name services and security from there.
"""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clickmill.errors import AccessError, MissingExtra, RemoteError
from clickmill.store.remote.access import hdfs_user
from clickmill.store.remote.store import Listing, RemoteFile, Unsteady, changed

try:
    from hdfs_native import Client, WriteOptions
except ImportError as error:
    raise MissingExtra(
        "URLs of HDFS need the package `hdfs-native`",
        hint="install it with `pip install 'clickmill[hdfs]'`",
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hdfs_native import FileStatus

    from clickmill.store.remote.url import Place

_WRITE_BYTES = 4 << 20
_USER = "HADOOP_USER_NAME"
_CONFIG = {
    # How long to try again is decided in one place, for all stores: the client would do so for minutes.
    "dfs.client.failover.max.attempts": "3",
    "dfs.client.failover.sleep.base.millis": "100",
    "dfs.client.failover.sleep.max.millis": "1000",
}


class HdfsStore:
    """One file system."""

    def __init__(self, host: str) -> None:
        self._host = host
        user = hdfs_user() or os.environ.get(_USER) or ""
        if user:
            # The client takes the name from the environment, each time it connects.
            os.environ[_USER] = user
        try:
            self._client = _open(host, user)
        except RuntimeError as error:
            raise RemoteError(
                f"`hdfs://{host}`: {_words(error)}",
                hint="for a name service without a port, set HADOOP_CONF_DIR to the folder of hdfs-site.xml",
            ) from error

    def has_ranges(self, file: RemoteFile) -> bool:
        del file
        return True

    def find(self, place: Place) -> RemoteFile | None:
        try:
            status = self._call(self._client.get_file_info, _path(place))
        except FileNotFoundError:
            return None
        return None if status.isdir else _file(place, status)

    def list(self, place: Place, wanted: Callable[[str], bool]) -> Listing | None:
        try:
            found = self._call(lambda path: list(self._client.list_status(path)), _path(place))
        except FileNotFoundError:
            return None
        files = []
        folders = []
        for status in found:
            name = status.path.rpartition("/")[2]
            if status.isdir:
                folders.append(name)
            elif wanted(name):
                files.append(_file(place.child(name), status))
        return Listing(files, folders)

    def read(self, file: RemoteFile, start: int, end: int) -> Iterator[bytes]:
        now = self.find(file.place)
        if now != file:
            raise changed(file, "it is gone" if now is None else "it is longer, shorter or later")
        try:
            reader = self._call(self._client.read, _path(file.place))
        except FileNotFoundError:
            raise changed(file, "it is gone") from None
        stream = reader.read_range_stream(start, end - start)
        while (piece := self._call(next, stream, None)) is not None:
            yield piece

    def upload(self, path: Path, place: Place) -> None:
        target = _path(place)
        folder, _, name = target.rpartition("/")
        partial = f"{folder}/.{name}.partial-{secrets.token_hex(4)}"
        options = WriteOptions(overwrite=True, create_parent=True)
        writer = self._call(self._client.create, partial, options)
        try:
            with path.open("rb") as file:
                while chunk := file.read(_WRITE_BYTES):
                    self._call(writer.write, chunk)
            self._call(writer.close)
            self._call(self._client.rename, partial, target, overwrite=True)
        except BaseException:
            self._call(self._client.delete, partial)
            raise

    def remove(self, place: Place) -> None:
        self._call(self._client.delete, _path(place))

    def _call(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Unsteady(str(error)) from error
        except RuntimeError as error:
            words = _words(error)
            if "AccessControlException" in words or "Permission denied" in words:
                raise AccessError(
                    f"`hdfs://{self._host}`: no access: {words}",
                    hint="set CLICKMILL_FS_UGI (`user,password`) or HADOOP_USER_NAME to one who may do this",
                ) from error
            raise Unsteady(words) from error


def _path(place: Place) -> str:
    return f"/{place.path}".rstrip("/") or "/"


def _file(place: Place, status: FileStatus) -> RemoteFile:
    return RemoteFile(place.url, status.length, str(status.modification_time))


def _words(error: BaseException) -> str:
    """The first line of what a server says, without the calls that it came from."""
    return str(error).partition("\\n")[0].partition("\n")[0].replace('\\"', '"')


@lru_cache(maxsize=64)
def _open(host: str, user: str) -> Client:
    """One client for all who are the same user."""
    del user
    return Client(f"hdfs://{host}", dict(_CONFIG))
