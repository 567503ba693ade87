"""What every store elsewhere can do, and what its files are known by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from clickmill.errors import DataError
from clickmill.store.remote.url import parse, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from clickmill.store.remote.url import Place


@dataclass(frozen=True)
class RemoteFile:
    """A file elsewhere, as it was when it was found."""

    url: str
    num_bytes: int
    version: str
    """Changes when the file does: its entity tag, or the time of its last change."""

    @property
    def place(self) -> Place:
        return parse(self.url)

    @property
    def name(self) -> str:
        """Without its folder; checked, for it becomes the name of a local file."""
        name = self.place.name
        if name in {"", ".", ".."} or "/" in name or "\0" in name:
            raise DataError(f"`{self}` has a name that no local file can have")
        return name

    def __str__(self) -> str:
        return shown(self.url)


@dataclass(frozen=True)
class Listing:
    """What a folder holds, itself and nothing below it."""

    files: list[RemoteFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    """Names."""


class Unsteady(Exception):  # noqa: N818 - no failure yet
    """It did not work this time; the next try may."""


class Cancelled(Exception):  # noqa: N818 - somebody wanted it so
    """Nobody needs what was under way any more."""


class RemoteStore(Protocol):
    """Files by place. What may work another time raises Unsteady; AccessError and RemoteError are final."""

    def has_ranges(self, file: RemoteFile) -> bool:
        """Whether parts of it can be read side by side."""

    def find(self, place: Place) -> RemoteFile | None:
        """The file; None where there is none of this name."""

    def list(self, place: Place, wanted: Callable[[str], bool]) -> Listing | None:
        """A folder, of its files those whose names are wanted; None where there is no such folder."""

    def read(self, file: RemoteFile, start: int, end: int) -> Iterator[bytes]:
        """Bytes from `start` to before `end`, in pieces; DataError where the file is not what it was."""

    def upload(self, path: Path, place: Place) -> None:
        """Put a local file there, in place of an older one; nobody sees half of it."""

    def remove(self, place: Place) -> None:
        """Remove a file; nothing where there is none."""


def changed(file: RemoteFile, what: str) -> DataError:
    """A file that is not what it was when it was found."""
    return DataError(
        f"`{file}` has changed since it was found: {what}",
        hint="data must stay as it is while it is read: put new data under new names, then start again",
    )
