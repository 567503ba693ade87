"""The journal of a run: one JSON object a line, append-only, read by `clickmill report`.

A checkpoint notes how long the journal was; a resumed run cuts it back to that length, so that no batch
stands in it twice. The journal of a cluster has several writers, and nobody cuts it: when its run goes back,
an event says to which step, and `read_journal` passes over what was told of later ones.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from clickmill.errors import DataError, FormatError, StorageError
from clickmill.store.plain_json import plain_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import RawIOBase
    from pathlib import Path

FILE_NAME = "journal.jsonl"

Event = dict[str, Any]


class Journal:
    """Writes events; each is flushed to the kernel at once, so that kill -9 loses none."""

    def __init__(self, folder: Path, *, keep_bytes: int | None = 0, name: str = FILE_NAME) -> None:
        """The first `keep_bytes` stay; None: all, also what others write meanwhile."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / name
        # Unbuffered: what could not be written is told at once and not tried again when the file is closed.
        self._file: RawIOBase = self.path.open("ab", buffering=0)
        size = self._file.seek(0, os.SEEK_END)
        if keep_bytes is None:
            return
        if size < keep_bytes:
            self._file.close()
            raise FormatError(
                f"{self.path} has {size} bytes, but the checkpoint was written when it had {keep_bytes}",
                hint="the journal was cut or replaced; `init_model_path` starts a new run from here",
            )
        os.ftruncate(self._file.fileno(), keep_bytes)
        self._file.seek(0, os.SEEK_END)

    def write(self, event: str, **fields: Any) -> None:
        """Append one event; a metric that is not a number, as while a class is empty, is null."""
        line = plain_json({"event": event, **fields}).encode() + b"\n"
        try:
            while line:
                line = line[self._file.write(line) or 0 :]
        except OSError as error:
            raise StorageError(
                f"cannot write to `{self.path}`: {error.strerror}",
                hint="free some space and go on with `--resume`",
            ) from error

    def num_bytes(self) -> int:
        """Length so far, durable: synced before it is told."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        """Close the file; the journal stays readable."""
        self._file.close()


def read_journal(folder: Path) -> list[Event]:
    """Events of a run that count, in order: what was undone when it went back is not among them."""
    counting: list[Event] = []
    epoch = 0
    for event in read_lines(folder):
        if event["event"] == "epoch_start" and event["epoch"] > epoch:
            epoch = event["epoch"]
            counting = [each for each in counting if each.get("step", 0) <= event["step"]]
        if event["event"] == "pass_end":
            # It may be told again where it went back to the very end of a pass, or a trainer died telling it.
            counting = [each for each in counting if not _is_end_from(each, event["pass_number"])]
        counting.append(event)
    return counting


def _is_end_from(event: Event, pass_number: int) -> bool:
    return event["event"] == "pass_end" and bool(event["pass_number"] >= pass_number)


def read_lines(folder: Path) -> Iterator[Event]:
    """Everything that was told; a half-written last line, as a crash leaves it, is passed over."""
    path = folder / FILE_NAME if folder.is_dir() else folder
    if not path.is_file():
        raise DataError(
            f"no journal at `{path}`", hint="give the folder of a run, as `clickmill train` printed it"
        )
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise FormatError(
                    f"{path}:{number}:{error.colno}: not a journal line: {error.msg}"
                ) from error
