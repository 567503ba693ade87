"""The store of a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.store.remote.steady import SteadyStore

if TYPE_CHECKING:
    import threading

    from clickmill.store.remote.store import RemoteStore
    from clickmill.store.remote.url import Place


def open_store(place: Place, *, stop: threading.Event | None = None) -> SteadyStore:
    """The store that `place` is in; connections and credentials are shared by all who ask.

    Nothing is tried again once `stop` is set. Raises MissingExtra where the package for it is not installed.
    """
    return SteadyStore(_open(place), stop)


def _open(place: Place) -> RemoteStore:
    match place.scheme:
        case "s3":
            from clickmill.store.remote.s3_store import S3Store  # noqa: PLC0415 - needs the extra `s3`

            return S3Store(place.host)
        case "hdfs":
            from clickmill.store.remote.hdfs_store import HdfsStore  # noqa: PLC0415 - needs the extra `hdfs`

            return HdfsStore(place.host)
        case _:
            from clickmill.store.remote.http_store import HttpStore  # noqa: PLC0415 - needs the extra `http`

            return HttpStore()
