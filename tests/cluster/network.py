"""A network of their own for some processes, whose cable can be pulled: packets vanish, nothing is told.

Needs root and the `ip` command; tests that use it are skipped elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_NOBODY = "02:00:00:00:00:99"
"""A hardware address that no end of the cable has."""


_numbers = itertools.count()


@dataclass(frozen=True)
class Island:
    """A namespace that a cable joins to the network of this process."""

    name: str
    link: str
    here: str
    """Address of this side."""
    there: str

    @property
    def path(self) -> str:
        return f"/run/netns/{self.name}"

    def cut(self) -> None:
        """From now on every packet to and from the island is lost."""
        _ip("neigh", "replace", self.there, "lladdr", _NOBODY, "dev", self.link, "nud", "permanent")
        _ip(
            "-n",
            self.name,
            "neigh",
            "replace",
            self.here,
            "lladdr",
            _NOBODY,
            "dev",
            "cable",
            "nud",
            "permanent",
        )

    def mend(self) -> None:
        _ip("neigh", "del", self.there, "dev", self.link)
        _ip("-n", self.name, "neigh", "del", self.here, "dev", "cable")


def can_make_islands() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"clickmill-{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        _ip("netns", "del", name)
    return made


@contextlib.contextmanager
def island() -> Iterator[Island]:
    pid = os.getpid()
    third, fourth = pid // 64 % 256, pid % 64 * 4
    # The kernel takes an old one down when it pleases: its name is not used again.
    number = next(_numbers)
    own = Island(
        f"clickmill-{pid}-{number}",
        f"cm{pid}n{number}",
        f"10.231.{third}.{fourth + 1}",
        f"10.231.{third}.{fourth + 2}",
    )
    _ip("netns", "add", own.name)
    try:
        _ip("link", "add", own.link, "type", "veth", "peer", "name", "cable", "netns", own.name)
        _ip("addr", "add", f"{own.here}/30", "dev", own.link)
        _ip("link", "set", own.link, "up")
        _ip("-n", own.name, "addr", "add", f"{own.there}/30", "dev", "cable")
        _ip("-n", own.name, "link", "set", "cable", "up")
        _ip("-n", own.name, "link", "set", "lo", "up")
        yield own
    finally:
        subprocess.run(["ip", "link", "del", own.link], capture_output=True, check=False)
        _ip("netns", "del", own.name)


def move_to(namespace: str) -> None:
    """This thread, and all that it starts, get the network of a namespace."""
    with Path(namespace).open("rb") as file:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
