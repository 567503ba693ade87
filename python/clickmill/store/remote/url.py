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
from difflib import get_close_matches
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

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")  # one letter is a drive
_BARE = re.compile(r"^(hdfs|afs):(/[^/].*|/)$")
_MAGIC = re.compile(r"[*?\[]")


def is_url(text: str) -> bool:
    """Whether `text` names something elsewhere, be it in a store that is known or not."""
    return bool(_SCHEME.match(text) or _BARE.match(text))


def store_of(text: str) -> str | None:
    """`s3`, `hdfs`, `http` or `https`; None for a path, and for a URL of no store that is known."""
    match = _SCHEME.match(text) or _BARE.match(text)
    return SCHEMES.get(match[1].lower()) if match else None


def names_no_host(text: str) -> bool:
    """Whether it is a URL whose host is that of `CLICKMILL_FS_NAME`."""
    return store_of(text) == "hdfs" and not _split(text)[1]


def joined(*parts: str) -> str:
    """`hdfs://host/folder/part`; a pattern or a file behind the folder stays behind it."""
    first, *others = parts
    below = [part.strip("/") for part in others if part.strip("/")]
    return "/".join([first.rstrip("/"), *below]) if below else first


@dataclass(frozen=True)
class Fault:
    """Why a URL means nothing, wherever it is read."""

    words: str
    hint: str | None = None
    suggestion: str | None = None
    """The scheme that is most like the one that was written."""

    @property
    def message(self) -> str:
        """All of it, where the URL stands beside it."""
        return f"{self.words}; {self.hint}" if self.hint else self.words


def fault_of(url: str) -> Fault | None:
    """What is wrong with a URL; None where nothing is. Nothing of it is repeated, for it may hold secrets."""
    kind = store_of(url)
    if kind is None:
        scheme = _split(url)[0].lower()
        nearest = get_close_matches(scheme, SCHEMES, n=1, cutoff=0.5)
        known = ", ".join(f"`{each}://`" for each in SCHEMES)
        suggestion = f"{nearest[0]}://" if nearest else None
        return Fault("is in no store that is known", f"there are {known}", suggestion)
    if kind != "hdfs" and not _split(url)[1]:
        return Fault(f"names no {'bucket' if kind == 's3' else 'host'}")
    if kind in {"http", "https"} and not _can_be_split(url):
        return Fault("has brackets that hold no address")
    return None


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
    if fault := fault_of(text):
        raise ConfigError(f"`{shown(text)}` {fault.words}", hint=fault.hint)
    kind = store_of(text)
    assert kind is not None
    _, host, path = _split(text)
    if kind in {"http", "https"}:
        split = urlsplit(text)
        return Place(kind, split.netloc, split.path.lstrip("/"), f"?{split.query}" if split.query else "")
    if kind == "hdfs":
        return Place(kind, host or _default_host(text), path.lstrip("/"))
    return Place(kind, host, path)


def _split(url: str) -> tuple[str, str, str]:
    """Scheme, host and path; a URL may name no host."""
    scheme, _, rest = url.partition(":")
    if not rest.startswith("//"):
        return scheme, "", rest
    host, _, path = rest[2:].partition("/")
    if scheme.lower() in {"http", "https"}:
        host = host.partition("?")[0].partition("#")[0]
    return scheme, host, path


def _can_be_split(url: str) -> bool:
    try:
        urlsplit(url)
    except ValueError:  # `http://[there/log`
        return False
    return True


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
