"""HTTP and HTTPS; needs the extra `http`.

Files are anything that answers GET with its length. Folders are pages with links, as nginx (`autoindex`),
Apache and `python -m http.server` make them, or the JSON of nginx. Uploads are PUT. CLICKMILL_HTTP_TOKEN goes
along as a bearer token.
"""

from __future__ import annotations

import atexit
import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from clickmill.errors import AccessError, DataError, MissingExtra, RemoteError
from clickmill.store.remote.access import HTTP_TOKEN, secret
from clickmill.store.remote.store import Listing, RemoteFile, Unsteady, changed
from clickmill.store.remote.url import shown

try:
    import httpx2 as httpx
except ImportError as error:
    raise MissingExtra(
        "URLs of HTTP need the package `httpx2`", hint="install it with `pip install 'clickmill[http]'`"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from clickmill.store.remote.url import Place

_OK, _PARTIAL = 200, 206
_REFUSED = (401, 403, 407)
_ABSENT = (404, 410)
_NO_HEAD = (405, 501)
_LATER = (408, 425, 429)
_PIECE_BYTES = 1 << 20
_MOST_PAGE_BYTES = 64 << 20
_HEADS_AT_ONCE = 8
_TOTAL = re.compile(r"bytes \d+-\d+/(\d+)")
_PLAIN = {"Accept-Encoding": "identity"}
"""Bytes as they lie there: lengths could not be checked otherwise."""


class HttpStore:
    """Everything that speaks HTTP."""

    def __init__(self) -> None:
        self._client = _open()
        self._token = secret(HTTP_TOKEN)
        self._ranged: set[str] = set()
        """Hosts that send parts of files."""

    def has_ranges(self, file: RemoteFile) -> bool:
        return file.place.host in self._ranged

    def find(self, place: Place) -> RemoteFile | None:
        response = self._request("HEAD", place)
        # A URL that is signed for GET is good for nothing else.
        if response.status_code in _NO_HEAD or (place.query and response.status_code in _REFUSED):
            response = self._request("GET", place, {"Range": "bytes=0-0"})
        if response.status_code in _ABSENT or _is_folder(response):
            return None
        self._check(place, response)
        if response.headers.get("accept-ranges") == "bytes" or response.status_code == _PARTIAL:
            self._ranged.add(place.host)
        return RemoteFile(place.url, _length(place, response), _version(response))

    def list(self, place: Place, wanted: Callable[[str], bool]) -> Listing | None:
        folder = place.at(f"{place.path.rstrip('/')}/" if place.path.strip("/") else "")
        page = self._page(folder)
        if page is None:
            return None
        names = _names(page)
        files = [folder.child(name) for name in names if not name.endswith("/") and wanted(name)]
        folders = [name.rstrip("/") for name in names if name.endswith("/")]
        with ThreadPoolExecutor(_HEADS_AT_ONCE) as pool:
            found = [file for file in pool.map(self.find, files) if file is not None]
        return Listing(found, folders)

    def read(self, file: RemoteFile, start: int, end: int) -> Iterator[bytes]:
        is_whole = start == 0 and end == file.num_bytes
        headers = {} if is_whole else {"Range": f"bytes={start}-{end - 1}"}
        try:
            with self._stream("GET", file.place, headers) as response:
                if response.status_code in _ABSENT:
                    raise changed(file, "it is gone")
                self._check(file.place, response)
                now = RemoteFile(file.url, _length(file.place, response), _version(response))
                if now != file:
                    raise changed(file, f"{now.num_bytes} bytes instead of {file.num_bytes}, or later")
                # A server that knows no ranges sends all from the start.
                skip = 0 if response.status_code == _PARTIAL else start
                left = end - start
                for whole in response.iter_raw(_PIECE_BYTES):
                    piece = whole[skip : skip + left]
                    skip = max(skip - len(whole), 0)
                    left -= len(piece)
                    if piece:
                        yield piece
                    if left == 0:
                        return
        except httpx.TransportError as error:
            raise Unsteady(_words(error)) from error

    def upload(self, path: Path, place: Place) -> None:
        headers = {"Content-Length": str(path.stat().st_size)}
        try:
            with path.open("rb") as file:
                pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
                response = self._client.put(place.url, content=pieces, headers=self._headers(place, headers))
        except httpx.TransportError as error:
            raise Unsteady(_words(error)) from error
        self._check(place, response)

    def remove(self, place: Place) -> None:
        response = self._request("DELETE", place)
        if response.status_code not in _ABSENT:
            self._check(place, response)

    def _request(self, method: str, place: Place, headers: dict[str, str] | None = None) -> httpx.Response:
        """An answer without its content."""
        try:
            with self._stream(method, place, headers or {}) as response:
                return response
        except httpx.TransportError as error:
            raise Unsteady(_words(error)) from error

    def _stream(
        self, method: str, place: Place, headers: dict[str, str]
    ) -> AbstractContextManager[httpx.Response]:
        return self._client.stream(method, place.url, headers=self._headers(place, {**_PLAIN, **headers}))

    def _headers(self, place: Place, headers: dict[str, str]) -> dict[str, str]:
        """With the token, unless the URL says itself who asks."""
        if self._token and not place.query and "@" not in place.host:
            return {**headers, "Authorization": f"Bearer {self._token}"}
        return headers

    def _page(self, folder: Place) -> _Page | None:
        try:
            with self._stream("GET", folder, {}) as response:
                if response.status_code in _ABSENT:
                    return None
                self._check(folder, response)
                content = b""
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > _MOST_PAGE_BYTES:
                        raise RemoteError(f"`{shown(folder.url)}`: the page is too long for a listing")
        except httpx.TransportError as error:
            raise Unsteady(_words(error)) from error
        kind = response.headers.get("content-type", "")
        return _Page(str(response.url), kind, content.decode(errors="replace"))

    @staticmethod
    def _check(place: Place, response: httpx.Response) -> None:
        status = response.status_code
        words = f"{status} {response.reason_phrase}".strip()
        if status in _REFUSED:
            raise AccessError(
                f"`{shown(place.url)}`: no access: {words}",
                hint=f"set {HTTP_TOKEN}, or {HTTP_TOKEN}_FILE to a file that holds the token",
            )
        if status >= 500 or status in _LATER:
            raise Unsteady(words)
        if not response.is_success:
            raise RemoteError(f"`{shown(place.url)}`: the server answers {words}")


class _Page:
    """An answer with the entries of a folder."""

    def __init__(self, url: str, kind: str, text: str) -> None:
        self.url = url
        self.kind = kind
        self.text = text


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.targets += [value for name, value in attrs if name == "href" and value]


def _names(page: _Page) -> list[str]:
    """Entries of a folder, each once and in order; those of folders end with a slash."""
    if "json" in page.kind:
        try:
            entries = json.loads(page.text)
            names = [f"{each['name']}{'/' if each.get('type') == 'directory' else ''}" for each in entries]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RemoteError(f"`{shown(page.url)}`: the JSON there is no listing: {error}") from error
        return list(dict.fromkeys(names))
    if "html" not in page.kind:
        raise RemoteError(
            f"`{shown(page.url)}` is no listing of a folder, but {page.kind or 'of no type'}",
            hint="name the files, or turn on the listing of folders (`autoindex on` of nginx)",
        )
    links = _Links()
    links.feed(page.text)
    here = urlsplit(page.url)
    names = []
    for target in links.targets:
        there = urlsplit(urljoin(page.url, target))
        if there.netloc != here.netloc or there.query or not there.path.startswith(here.path):
            continue
        rest = there.path[len(here.path) :]
        if rest and "/" not in rest[:-1]:
            names.append(unquote(rest))
    return list(dict.fromkeys(names))


def _is_folder(response: httpx.Response) -> bool:
    """Whether the server shows a page for it, at a path with a slash to which it may have sent us on."""
    is_page = any(kind in response.headers.get("content-type", "") for kind in ("html", "json"))
    return response.is_success and response.url.path.endswith("/") and is_page


def _length(place: Place, response: httpx.Response) -> int:
    total = _TOTAL.fullmatch(response.headers.get("content-range", ""))
    text = total[1] if total else response.headers.get("content-length", "")
    if response.headers.get("content-encoding", "identity") != "identity" or not text.isdecimal():
        raise DataError(
            f"`{shown(place.url)}`: the server does not tell how long it is",
            hint="serve it as a file, or download it first",
        )
    return int(text)


def _version(response: httpx.Response) -> str:
    return response.headers.get("etag") or response.headers.get("last-modified") or ""


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@lru_cache(maxsize=1)
def _open() -> httpx.Client:
    """One pool of connections; a token is dropped where a server sends us on to another host."""
    client = httpx.Client(
        timeout=httpx.Timeout(connect=10.0, read=60.0, write=60.0, pool=60.0),
        limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
        follow_redirects=True,
    )
    atexit.register(client.close)
    return client
