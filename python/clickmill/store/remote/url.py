"""URLs of files and folders elsewhere, as people write them.

    s3://bucket/key            also s3a:// and s3n://
    hdfs://host:port/path      also hdfs:///path and hdfs:/path, on the host that CLICKMILL_FS_NAME names
    afs://host:port/path       the same, under the name that older jobs use
    http://host/path           and https://

Paths of S3 and HDFS are meant as they stand; those of HTTP are percent-encoded, as everywhere.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from clickmill.errors import ConfigError

SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "hdfs": "hdfs",
    "afs": "hdfs",
    "http": "http",
    "https": "https",
}
"""What a scheme is read as."""

FS_NAME = "CLICKMILL_FS_NAME"
"""Variable: the file system of `hdfs:` and `afs:` URLs that name no host."""

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
_BARE = re.compile(r"^(hdfs|afs):(/[^/].*|/)$")
_MAGIC = re.compile(r"[*?\[]")


def is_url(text: str) -> bool:
    """Whether `text` names something elsewhere, be it in a store that is known or not."""
    return bool(_SCHEME.match(text) or _BARE.match(text))


def has_magic(text: str) -> bool:
    """Whether `text` is a pattern."""
    return bool(_MAGIC.search(text))


@dataclass(frozen=True)
class Place:
    """A URL, taken apart."""

    scheme: str
    """`s3`, `hdfs`, `http` or `https`."""
    host: str
    """Bucket, or host with its port and, for HTTP, whoever logs in."""
    path: str
    """Without the first slash; a folder may end with one."""
    query: str = ""
    """Of HTTP, with its question mark."""

    @property
    def url(self) -> str:
        """The whole, in one spelling for all ways of writing it."""
        return f"{self.scheme}://{self.host}/{self.path}{self.query}"

    @property
    def is_http(self) -> bool:
        return self.scheme in {"http", "https"}

    @property
    def name(self) -> str:
        """Last part of the path, decoded."""
        last = self.path.rstrip("/").rpartition("/")[2]
        return unquote(last) if self.is_http else last

    def child(self, name: str, *, is_folder: bool = False) -> Place:
        """What is called `name` in this folder."""
        part = quote(name) if self.is_http else name
        base = f"{self.path.rstrip('/')}/" if self.path.strip("/") else ""
        return Place(self.scheme, self.host, f"{base}{part}{'/' if is_folder else ''}")

    def at(self, path: str) -> Place:
        """Another path of the same store."""
        return Place(self.scheme, self.host, path)


def parse(text: str) -> Place:
    """A URL, taken apart; ConfigError for one that means nothing."""
    if _BARE.match(text):
        scheme, _, path = text.partition(":")
        text = f"{scheme}://{path}"
    match = _SCHEME.match(text)
    kind = SCHEMES.get(match[1].lower()) if match else None
    if match is None or kind is None:
        known = ", ".join(f"`{scheme}://`" for scheme in SCHEMES)
        raise ConfigError(f"`{shown(text)}` is in no store that is known", hint=f"there are {known}")
    host, _, path = text[match.end() :].partition("/")
    if kind in {"http", "https"}:
        split = urlsplit(text)
        host, path = split.netloc, split.path.lstrip("/")
        place = Place(kind, host, path, f"?{split.query}" if split.query else "")
    elif kind == "hdfs":
        place = Place(kind, host or _default_host(text), path.lstrip("/"))
    else:
        place = Place(kind, host, path)
    if not place.host:
        raise ConfigError(f"`{shown(text)}` names no {'bucket' if kind == 's3' else 'host'}")
    return place


def _default_host(text: str) -> str:
    name = os.environ.get(FS_NAME, "")
    match = _SCHEME.match(name)
    host = (name[match.end() :] if match else name).strip("/")
    if not host:
        raise ConfigError(
            f"`{text}` names no host, and {FS_NAME} is not set",
            hint=f"write the host into the URL, or set {FS_NAME} to a name such as `hdfs://host:8020`",
        )
    return host


def shown(url: str) -> str:
    """The URL without secrets: who logs in, and what a signed one carries behind its question mark."""
    head, mark, query = url.partition("?") if url.lower().startswith("http") else (url, "", "")
    scheme, separator, rest = head.partition("://")
    host, slash, path = rest.partition("/")
    host = host.rpartition("@")[2]
    return f"{scheme}{separator}{host}{slash}{path}" + (f"{mark}…" if query else "")
