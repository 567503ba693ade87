"""S3 and what speaks like it; needs the extra `s3`.

Keys, region and endpoint come from the variables that all S3 tools read: AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL; or from the shared file of
credentials.
"""

from __future__ import annotations

import os
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clickmill.errors import AccessError, MissingExtra, RemoteError
from clickmill.store.remote.access import s3_keys
from clickmill.store.remote.store import Listing, RemoteFile, Unsteady, changed

try:
    import obstore
    from obstore.exceptions import (
        BaseError,
        PermissionDeniedError,
        PreconditionError,
        UnauthenticatedError,
    )
    from obstore.store import S3Store as Bucket
except ImportError as error:
    raise MissingExtra(
        "URLs of S3 need the package `obstore`", hint="install it with `pip install 'clickmill[s3]'`"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from obstore import ObjectMeta

    from clickmill.store.remote.url import Place

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_PIECE_BYTES = 1 << 20
_PART_BYTES = 16 << 20
_MOST_PARTS = 9_000
"""Of one upload; S3 takes 10,000."""
_FINAL_STATUS = ("400 ", "404 ", "405 ", "409 ", "411 ", "416 ", "501 ")
_METADATA_HOST = "169.254.169.254"
"""Where keys are asked for on a machine of the cloud, when nobody has given any."""


class S3Store:
    """One bucket."""

    def __init__(self, bucket: str) -> None:
        self._name = bucket
        self._bucket = _open(bucket, _settings(), _environment())

    def has_ranges(self, file: RemoteFile) -> bool:
        del file
        return True

    def find(self, place: Place) -> RemoteFile | None:
        if not place.path.rstrip("/") or place.path.endswith("/"):
            return None
        try:
            return self._file(place, self._call(obstore.head, place.path))
        except FileNotFoundError:
            return None

    def list(self, place: Place, wanted: Callable[[str], bool]) -> Listing | None:
        folder = place.path.strip("/")
        try:
            found = self._call(obstore.list_with_delimiter, folder or None)
        except FileNotFoundError:
            return None
        files = [
            self._file(place.at(meta["path"]), meta)
            for meta in found["objects"]
            # Some tools put an object of the folder's own name there.
            if meta["path"].strip("/") != folder and wanted(meta["path"].rpartition("/")[2])
        ]
        folders = [each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"]]
        return Listing(files, folders) if found["objects"] or folders else None

    def read(self, file: RemoteFile, start: int, end: int) -> Iterator[bytes]:
        options: dict[str, Any] = {"range": (start, end)}
        if file.version.startswith('"'):
            options["if_match"] = file.version
        try:
            result = self._call(obstore.get, file.place.path, options=options)
        except FileNotFoundError:
            raise changed(file, "it is gone") from None
        except PreconditionError:
            raise changed(file, "it has another entity tag") from None
        meta = self._file(file.place, result.meta)
        if meta != file:
            raise changed(file, f"{meta.num_bytes} bytes instead of {file.num_bytes}, or later")
        stream = result.stream(min_chunk_size=_PIECE_BYTES)
        while (piece := self._call(_next, stream)) is not None:
            yield bytes(piece)

    def upload(self, path: Path, place: Place) -> None:
        part_bytes = max(_PART_BYTES, path.stat().st_size // _MOST_PARTS)
        try:
            self._call(obstore.put, place.path, path, chunk_size=part_bytes, max_concurrency=4)
        except FileNotFoundError:
            raise RemoteError(f"`{place.url}`: there is no bucket `{self._name}`") from None

    def remove(self, place: Place) -> None:
        try:
            self._call(obstore.delete, place.path)
        except FileNotFoundError:
            return

    @staticmethod
    def _file(place: Place, meta: ObjectMeta) -> RemoteFile:
        version = meta["e_tag"] or meta["last_modified"].isoformat()
        return RemoteFile(place.url, meta["size"], version)

    def _call(self, call: Callable[..., Any], first: Any, *rest: Any, **options: Any) -> Any:
        """`call`, on the bucket where it takes one; what it raises, as ours."""
        where = (first,) if call is _next else (self._bucket, first)
        try:
            return call(*where, *rest, **options)
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._refused(_words(error)) from error
        except PreconditionError:
            raise
        except BaseError as error:
            words = _words(error)
            if _METADATA_HOST in words:
                raise self._refused("there are no keys") from error
            if "NoSuchBucket" in words:
                raise RemoteError(f"there is no bucket `{self._name}`") from error
            if any(f"status code: {status}" in words for status in _FINAL_STATUS):
                raise RemoteError(f"`s3://{self._name}`: {words}") from error
            raise Unsteady(words) from error
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise Unsteady(str(error)) from error

    def _refused(self, reason: str) -> AccessError:
        return AccessError(
            f"`s3://{self._name}`: no access: {reason}",
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for a store of your own AWS_ENDPOINT_URL; "
            "or AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE; AWS_SKIP_SIGNATURE=true for a public bucket",
        )


def _next(stream: Any) -> Any:
    return next(stream, None)


def _words(error: BaseException) -> str:
    """The first sentence; what follows is of use to nobody."""
    text = str(error).partition("\n\nDebug source")[0].strip()
    return text if len(text) <= 300 else f"{text[:297]}..."


def _settings() -> tuple[tuple[str, str], ...]:
    settings = s3_keys()
    endpoint = next((value for name in _ENDPOINTS if (value := os.environ.get(name))), None)
    if endpoint:
        settings["endpoint"] = endpoint
    settings["region"] = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return tuple(sorted(settings.items()))


def _environment() -> tuple[tuple[str, str], ...]:
    """What the package reads by itself: roles of this machine, public buckets."""
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


@lru_cache(maxsize=64)
def _open(
    bucket: str, settings: tuple[tuple[str, str], ...], environment: tuple[tuple[str, str], ...]
) -> Bucket:
    """One pool of connections for all who have the same keys."""
    del environment
    config: Any = dict(settings)
    is_plain = str(config.get("endpoint", "")).startswith("http://")
    return Bucket(
        bucket,
        config=config,
        client_options={"connect_timeout": "10s", "timeout": "180s", "allow_http": is_plain},
        retry_config={
            "max_retries": 2,
            "retry_timeout": timedelta(seconds=20),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
    )
