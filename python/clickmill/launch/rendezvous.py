"""How the ranks of an MPI job find their first server: files in the folder of the run, which all of them see.

    <run folder>/rendezvous/<job>/token        written first, readable by its owner alone
    <run folder>/rendezvous/<job>/meeting      the address, written in one step when the server listens

The name of the job is part of the path, so that what an earlier job left is not taken for this one's.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill.errors import StateError
from clickmill.launch.address import Address, parse_address
from clickmill.launch.token import new_token, write_token
from clickmill.store.durable import replace_file

if TYPE_CHECKING:
    from pathlib import Path

_POLL_S = 0.05
_CONNECT_S = 5.0
FOLDER = "rendezvous"


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """The meeting place of one job; `folder` is that of the run."""

    folder: Path
    job: str

    @property
    def place(self) -> Path:
        return self.folder / FOLDER / re.sub(r"[^A-Za-z0-9._-]", "_", self.job)

    @property
    def token_file(self) -> Path:
        return self.place / "token"

    @property
    def meeting_file(self) -> Path:
        return self.place / "meeting"

    def open(self) -> None:
        """By the first rank: make the place, with a token; whatever lies there is older than the job."""
        shutil.rmtree(self.place, ignore_errors=True)
        write_token(self.token_file, new_token())

    def announce(self, address: Address) -> None:
        """By the first rank: it listens at `address`."""
        body = {"job": self.job, "address": str(address)}
        replace_file(self.meeting_file, json.dumps(body).encode() + b"\n")

    def close(self) -> None:
        """By the first rank: the job is over."""
        shutil.rmtree(self.place, ignore_errors=True)

    def wait(self, deadline_s: float, *, until_open: bool = True) -> Address:
        """By the others: where the first rank listens. Raises StateError after `deadline_s` seconds.

        With `until_open` an address that nobody listens at is not believed: a job that was killed has left
        its files behind, and the next one may have been given the same name.
        """
        end = time.monotonic() + deadline_s
        while True:
            address = self._read()
            if address is not None and (not until_open or _is_open(address)):
                return address
            if time.monotonic() >= end:
                raise StateError(
                    f"rank 0 does not listen, by `{self.meeting_file}`, after {deadline_s:g} seconds",
                    hint="all ranks need the same folder of the run: on several machines, a shared one",
                )
            time.sleep(_POLL_S)

    def _read(self) -> Address | None:
        try:
            body = json.loads(self.meeting_file.read_bytes())
        except FileNotFoundError:
            return None
        return parse_address(body["address"]) if body["job"] == self.job else None


def _is_open(address: Address) -> bool:
    try:
        socket.create_connection(address, timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True
