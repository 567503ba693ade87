"""`clickmill pod-files`: gives the files of a folder out over HTTP, to whoever has the token.

    GET /healthz                 whether it runs; the only answer without a token
    GET /files?path=P            all files below P: path, num_bytes, modified_ns, tag
    GET /file?path=P             a file; with `Range: bytes=A-B` a piece of it, of at most PIECE_BYTES
    HEAD /file?path=P            the same without the content

A piece comes with `X-Clickmill-Sha256`, the digest of its bytes, and every file with its tag as `ETag`; with
`If-Match` another tag is refused (412), so that pieces of two files are never taken for one.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import re
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from clickmill.errors import ConfigError, PortTakenError, StorageError
from clickmill.jobs.files.folder import ServedFolder

if TYPE_CHECKING:
    from pathlib import Path

    from clickmill.jobs.files.folder import FileEntry, Opened

logger = logging.getLogger(__name__)

PIECE_BYTES = 8 << 20
_COPY_BYTES = 1 << 20
TOKEN_HEADER = "X-Clickmill-Token"
"""An API server's proxy keeps `Authorization` for itself."""
DIGEST_HEADER = "X-Clickmill-Sha256"
_MIN_TOKEN_CHARACTERS = 16
_MAX_CONNECTIONS = 8
_SILENCE_S = 30.0
"""After which a connection is closed."""
_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})")


class FileServer(ThreadingHTTPServer):
    """Serves a folder read-only until it is closed, or until nobody has asked for long enough."""

    daemon_threads = True
    # Two servers on one port would be a riddle; a port that was used a moment ago is fine.
    allow_reuse_address = True
    allow_reuse_port = False

    def __init__(
        self, folder: Path, address: tuple[str, int], *, token: str | None, is_insecure: bool = False
    ) -> None:
        """Port 0 takes a free one. Beyond this machine a token is needed, unless `is_insecure`."""
        check_access(address[0], token, is_insecure=is_insecure)
        if not folder.is_dir():
            raise StorageError(
                f"there is no folder `{folder}` to give out",
                hint="the folder of a run is made when it begins to train: has it?",
            )
        self.folder = ServedFolder(folder)
        self.token = token
        self._places = threading.Semaphore(_MAX_CONNECTIONS)
        self._asked = time.monotonic()
        self._num_under_way = 0
        self._changing = threading.Lock()
        try:
            super().__init__(address, _Requests)
        except OSError as error:
            raise PortTakenError(
                f"cannot listen on {address[0]}:{address[1]}: {error.strerror or error}"
            ) from error

    def serve_until_idle(self, idle_s: float) -> None:
        """Answer until nobody has asked for anything for so long."""
        watch = threading.Thread(target=self._end_when_idle, args=(idle_s,), name="idle", daemon=True)
        watch.start()
        self.serve_forever(poll_interval=0.2)

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread a connection, and never more than there are places."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - as the base has it
        """A peer that goes away is no event; anything else is told."""
        logger.debug("pod_files.connection_failed peer=%s", client_address, exc_info=True)

    def begin(self) -> None:
        """A request has come."""
        with self._changing:
            self._num_under_way += 1

    def end(self) -> None:
        """It has been answered."""
        with self._changing:
            self._num_under_way -= 1
            self._asked = time.monotonic()

    def _end_when_idle(self, idle_s: float) -> None:
        while True:
            with self._changing:
                left = idle_s if self._num_under_way else self._asked + idle_s - time.monotonic()
            if left <= 0:
                logger.info("pod_files.idle seconds=%.0f", idle_s)
                self.shutdown()
                return
            time.sleep(min(left, 1.0))


def check_access(host: str, token: str | None, *, is_insecure: bool) -> None:
    """Raises ConfigError where others could read without a token, or guess it."""
    if token is not None and len(token) < _MIN_TOKEN_CHARACTERS:
        raise ConfigError(
            f"the token has {len(token)} characters; use {_MIN_TOKEN_CHARACTERS} or more, drawn at random"
        )
    if token is None and not is_insecure and not _is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines, and there is no token",
            hint="give --token-file or CLICKMILL_TOKEN, or say that it is meant with --insecure",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except OSError:
        return False


class _Requests(BaseHTTPRequestHandler):
    """The requests of one connection."""

    server: FileServer
    protocol_version = "HTTP/1.1"
    server_version = "clickmill"
    sys_version = ""
    timeout = _SILENCE_S

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is that of the base
        logger.debug(format, *args)

    def _answer(self) -> None:
        self.server.begin()
        try:
            self._route()
        except (FileNotFoundError, NotADirectoryError):
            self._say(HTTPStatus.NOT_FOUND, "there is no such file or folder")
        except OverflowError as error:
            self._say(HTTPStatus.CONFLICT, str(error))
        except TimeoutError:
            self.close_connection = True
        except OSError as error:
            if isinstance(error, ConnectionError):
                self.close_connection = True
            else:  # ELOOP of a link is one of these
                self._say(HTTPStatus.NOT_FOUND, f"it cannot be read: {error.strerror or error}")
        finally:
            self.server.end()

    def _route(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/healthz":
            self._say(HTTPStatus.OK, "ok")
        elif not self._is_allowed():
            self._say(HTTPStatus.UNAUTHORIZED, "a token is needed")
        elif url.path in {"/files", "/file"}:
            path = parse_qs(url.query, keep_blank_values=True, max_num_fields=8).get("path", [""])[0]
            if url.path == "/files":
                self._list(path)
            else:
                with self.server.folder.open(path) as opened:
                    self._give(opened)
        else:
            self._say(HTTPStatus.NOT_FOUND, "there are /files, /file and /healthz")

    def _is_allowed(self) -> bool:
        token = self.server.token
        if token is None:
            return True
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        given = (self.headers.get(TOKEN_HEADER, ""), bearer)
        return any(hmac.compare_digest(each.encode(), token.encode()) for each in given)

    def _list(self, path: str) -> None:
        files = [entry.to_dict() for entry in self.server.folder.listing(path)]
        self._send(HTTPStatus.OK, json.dumps({"files": files}).encode(), "application/json")

    def _give(self, opened: Opened) -> None:
        entry = opened.entry
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted.strip('"') != entry.tag:
            self._say(HTTPStatus.PRECONDITION_FAILED, "the file was replaced or written to")
            return
        asked = self.headers.get("Range")
        if asked is None:
            self._give_whole(opened)
            return
        found = _RANGE.fullmatch(asked)
        start, last = (int(found[1]), int(found[2])) if found else (0, -1)
        last = min(last, entry.num_bytes - 1, start + PIECE_BYTES - 1)
        if start > last:
            self._say(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"it has {entry.num_bytes} bytes")
            return
        opened.file.seek(start)
        piece = opened.file.read(last - start + 1)
        headers = {
            "Content-Range": f"bytes {start}-{start + len(piece) - 1}/{entry.num_bytes}",
            DIGEST_HEADER: hashlib.sha256(piece).hexdigest(),
        }
        self._send(HTTPStatus.PARTIAL_CONTENT, piece, headers=headers, entry=entry)

    def _give_whole(self, opened: Opened) -> None:
        self._head(HTTPStatus.OK, opened.entry.num_bytes, entry=opened.entry)
        if self.command == "HEAD":
            return
        left = opened.entry.num_bytes
        while left:
            data = opened.file.read(min(left, _COPY_BYTES))
            if not data:  # it has become shorter meanwhile: who reads must notice
                self.close_connection = True
                return
            self.wfile.write(data)
            left -= len(data)

    def _say(self, status: HTTPStatus, words: str) -> None:
        self._send(status, f"{words}\n".encode(), "text/plain; charset=utf-8")

    def _send(
        self,
        status: HTTPStatus,
        body: bytes,
        content_type: str = "application/octet-stream",
        *,
        headers: dict[str, str] | None = None,
        entry: FileEntry | None = None,
    ) -> None:
        self._head(status, len(body), content_type, headers=headers, entry=entry)
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(
        self,
        status: HTTPStatus,
        num_bytes: int,
        content_type: str = "application/octet-stream",
        *,
        headers: dict[str, str] | None = None,
        entry: FileEntry | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(num_bytes))
        self.send_header("Cache-Control", "no-store")
        if entry is not None:
            self.send_header("ETag", f'"{entry.tag}"')
            self.send_header("Accept-Ranges", "bytes")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
