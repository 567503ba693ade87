"""Which files a URL means: a file, a folder of files, or a pattern."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from clickmill.errors import DataError
from clickmill.store.remote.opening import open_store
from clickmill.store.remote.url import has_magic, parse, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clickmill.store.remote.steady import SteadyStore
    from clickmill.store.remote.store import RemoteFile
    from clickmill.store.remote.url import Place

_EVERYWHERE = "**"


def find_remote(url: str) -> list[RemoteFile]:
    """Files of a URL, by name, as `find_files` finds local ones; DataError where there is none.

    Hidden files and files of side systems (`_SUCCESS`) are passed over in folders and patterns, never when
    they are named.
    """
    place = parse(url)
    store = open_store(place)
    if has_magic(place.path) and not place.query:
        parts = place.path.split("/")
        first = next(index for index, part in enumerate(parts) if has_magic(part))
        found = list(dict.fromkeys(_expand(store, place.at("/".join(parts[:first])), parts[first:])))
    else:
        file = store.find(place)
        if file is not None:
            return [file]
        listing = None if place.query else store.list(place, _is_visible)
        if listing is not None and not listing.files:
            raise _nothing(url, "folder is empty")
        found = [] if listing is None else listing.files
    found = sorted((file for file in found if _is_visible(file.name)), key=_order)
    if not found:
        raise _nothing(url, "no such file, folder or pattern")
    return found


def _nothing(url: str, what: str) -> DataError:
    return DataError(f"`{shown(url)}`: {what}", hint="check `data_path` of the data set")


def _order(file: RemoteFile) -> list[str]:
    """As paths are sorted: part by part."""
    return file.place.path.split("/")


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "_"))


def _matches(name: str, pattern: str) -> bool:
    """As in a shell, which shows hidden files only to patterns that begin with a dot."""
    return fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))


def _expand(store: SteadyStore, folder: Place, parts: Sequence[str]) -> Iterator[RemoteFile]:
    """Files below `folder` that a pattern of these parts means."""
    head, rest = parts[0], parts[1:]
    if not has_magic(head):
        place = folder.at(f"{folder.path}/{head}" if folder.path else head)
        if rest:
            yield from _expand(store, place, rest)
        elif (file := store.find(place)) is not None:
            yield file
        return
    is_everywhere = head == _EVERYWHERE
    pattern = "*" if is_everywhere else head
    listing = store.list(folder, lambda name: not rest and _matches(name, pattern))
    if listing is None:
        return
    yield from listing.files
    if is_everywhere and rest:
        yield from _expand(store, folder, rest)
    below = parts if is_everywhere else rest
    for name in listing.folders if below else ():
        if _matches(name, pattern):
            yield from _expand(store, folder.child(name), below)
