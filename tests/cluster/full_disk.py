"""A small disk of its own for a command, which a test can fill."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


def on_small_disk(folder: str, kib: int, *command: str) -> tuple[str, ...]:
    """The same command with a tmpfs of `kib` KiB at `folder`, which only it and its children see."""
    mount = f"mkdir -p {folder} && mount -t tmpfs -o size={kib}k none {folder}"
    return ("unshare", "-rm", "sh", "-c", f"{mount} && exec {shlex.join(command)}")


def why_not() -> str | None:
    """Why there can be no such disk here."""
    try:
        tried = subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
        )
    except FileNotFoundError:
        return "there is no unshare"
    return tried.stderr.decode().strip() or "no mount" if tried.returncode else None


@dataclass(frozen=True)
class SmallDisk:
    """The disk as the process `pid` sees it."""

    pid: int
    folder: Path

    @property
    def path(self) -> Path:
        return Path(f"/proc/{self.pid}/root{self.folder}")

    def fill(self) -> None:
        no_room = pytest.raises(OSError, match=os.strerror(errno.ENOSPC))
        with (self.path / "filler").open("wb", buffering=0) as file, no_room:
            while True:
                file.write(bytes(4096))
