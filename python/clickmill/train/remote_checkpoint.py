"""Checkpoints elsewhere: brought here as a whole, and put there so that nobody ever sees half of one.

The manifest is what makes a folder a checkpoint. It is put there last and taken away first; whoever reads it
checks every other file against it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from clickmill.errors import DataError, FormatError, RemoteError
from clickmill.store import durable
from clickmill.store.remote.cache import Cache
from clickmill.store.remote.opening import open_store
from clickmill.store.remote.transfer import download
from clickmill.store.remote.url import is_url, parse, shown
from clickmill.store.remote.watching import Transfer
from clickmill.train.checkpoint import MANIFEST, Manifest, parse_manifest, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.store.remote.cache import Held
    from clickmill.store.remote.url import Place

logger = logging.getLogger("clickmill.train")

_MOST_MANIFEST_BYTES = 64 << 20
_URL_FILE = "url"

_in_use: dict[str, Held] = {}
"""Copies that this process has opened: they stay to its end."""


@dataclass(frozen=True)
class _Link:
    """A checkpoint of a chain: one that holds all rows, or one that holds what has changed since another."""

    place: Place
    text: bytes
    """The manifest as it stands there."""
    manifest: Manifest

    @property
    def num_bytes(self) -> int:
        return len(self.text) + sum(int(facts["bytes"]) for facts in self.manifest.files.values())


def local_checkpoint(source: str | Path) -> Path:
    """The folder of a checkpoint: as it is named, or a copy of one elsewhere in the cache of this host."""
    if not is_url(str(source)):
        return Path(source)
    chain = _read_chain(parse(str(source)))
    key = f"checkpoint {_identity(chain)}"
    found = Cache.of_environment().hold(
        key, sum(link.num_bytes for link in chain), lambda folder: _fill(chain, folder)
    )
    assert found is not None
    held = _in_use.setdefault(key, found[0])
    if held is not found[0]:
        found[0].release()
    return held.path / chain[-1].place.name


def shared_checkpoint(source: str, folder: Path) -> Path:
    """A copy in `folder` of a checkpoint elsewhere, for all processes that see it; the first one makes it.

    A copy that is there serves, where the checkpoint itself cannot be reached any more.
    """
    place = parse(source)
    try:
        chain = _read_chain(place)
    except RemoteError as error:
        copy = _known_copy(place, folder)
        if copy is None:
            raise
        logger.warning("origin.unchecked url=%s copy=%s reason=%s", shown(source), copy, error)
        return copy
    copy = folder / _identity(chain)
    with alone(folder):
        if not copy.is_dir():
            with durable.new_folder(copy) as partial:
                _fill(chain, partial)
                (partial / _URL_FILE).write_text(place.url, encoding="utf-8")
    return copy / place.name


def _known_copy(place: Place, folder: Path) -> Path | None:
    marks = [mark for mark in folder.glob(f"*/{_URL_FILE}") if mark.read_text(encoding="utf-8") == place.url]
    newest = max(marks, key=lambda mark: mark.stat().st_mtime, default=None)
    return None if newest is None else newest.parent / place.name


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time, of all that see the folder, which is made if need be."""
    with durable.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".remote.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def newest_checkpoint(*sources: str) -> str | None:
    """URL of the checkpoint with the most updates directly below these URLs; None where there is none.

    Raises DataError where several runs have left some: nobody could tell which is meant.
    """
    found = []
    for place in map(parse, sources):
        listing = open_store(place).list(place, lambda _: False)
        for name in () if listing is None else listing.folders:
            folder = place.child(name)
            text = _read_manifest(folder)
            if text is not None:
                found.append((parse_manifest(text, shown(folder.child(MANIFEST).url)), folder.url))
    runs = {manifest.run for manifest, _ in found}
    if len(runs) > 1:
        where = ", ".join(f"`{shown(source)}`" for source in sources)
        raise DataError(
            f"there are checkpoints of {len(runs)} runs at {where}", hint="name one with `--checkpoint`"
        )
    newest = max(found, key=lambda each: (each[0].step, each[0].is_pass_end), default=None)
    return None if newest is None else newest[1]


def upload_checkpoint(folder: Path, source: str) -> bool:
    """Put a checkpoint there, its manifest last; False where it was there already."""
    place = parse(source)
    manifest = read_manifest(folder)
    text = (folder / MANIFEST).read_bytes()
    there = _read_manifest(place)
    if there == text:
        return False
    store = open_store(place)
    if there is not None:
        # Of an older one under the same name, whose files are about to be replaced.
        store.remove(place.child(MANIFEST))
    num_bytes = len(text) + sum(int(facts["bytes"]) for facts in manifest.files.values())
    with Transfer("uploaded", shown(place.url), num_bytes) as transfer:
        for name in (*manifest.files, MANIFEST):
            path = folder / name
            store.upload(path, _below(place, name))
            transfer.advance(path.stat().st_size)
    return True


def remove_checkpoint(source: str) -> None:
    """Remove a checkpoint there; first it is none any more."""
    place = parse(source)
    text = _read_manifest(place)
    if text is None:
        return
    manifest = parse_manifest(text, shown(place.url))
    store = open_store(place)
    for name in (MANIFEST, *manifest.files):
        store.remove(_below(place, name))


def _read_chain(place: Place) -> list[_Link]:
    """The checkpoint and those that it builds on, the full one first."""
    chain: list[_Link] = []
    while True:
        text = _read_manifest(place)
        if text is None:
            what = "no checkpoint at" if not chain else f"checkpoint `{shown(chain[0].place.url)}` builds on"
            raise DataError(
                f"{what} `{shown(place.url)}`{', which is not there' if chain else ''}",
                hint="give the folder that holds `checkpoint.json`",
            )
        link = _Link(place, text, parse_manifest(text, shown(place.child(MANIFEST).url)))
        chain.insert(0, link)
        base = link.manifest.base
        if base is None:
            return chain
        if base in {"", ".", ".."} or "/" in base or any(base == each.place.name for each in chain):
            raise FormatError(
                f"`{shown(place.url)}` builds on `{base}`, which is no name of another checkpoint"
            )
        place = place.at(place.path.rstrip("/").rpartition("/")[0]).child(base)


def _read_manifest(folder: Place) -> bytes | None:
    store = open_store(folder)
    file = store.find(folder.child(MANIFEST))
    return None if file is None else store.read_all(file, max_bytes=_MOST_MANIFEST_BYTES)


def _identity(chain: list[_Link]) -> str:
    digest = hashlib.sha256()
    for link in chain:
        digest.update(f"{link.place.url}\n{len(link.text)}\n".encode())
        digest.update(link.text)
    return digest.hexdigest()[:32]


def _fill(chain: list[_Link], folder: Path) -> None:
    """All files of a chain, each checkpoint in a folder of its name; opening one checks what they hold."""
    for link in chain:
        own = folder / link.place.name
        own.mkdir()
        store = open_store(link.place)
        for name, facts in link.manifest.files.items():
            place = _below(link.place, name)
            file = store.find(place)
            if file is None or file.num_bytes != facts["bytes"]:
                found = "is not there" if file is None else f"has {file.num_bytes} bytes"
                raise FormatError(
                    f"`{shown(place.url)}` {found}; the manifest says {facts['bytes']} bytes",
                    hint="was another checkpoint put there meanwhile? try again, or take another one",
                )
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            download(file, own / name)
        (own / MANIFEST).write_bytes(link.text)


def _below(place: Place, name: str) -> Place:
    """A file of a checkpoint; its name comes from a manifest, and must stay inside the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise FormatError(f"`{shown(place.url)}`: the manifest names a file `{name}`, which is not inside it")
    for part in path.parts:
        place = place.child(part)
    return place
