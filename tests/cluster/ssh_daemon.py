"""A real sshd on loopback addresses, with keys of its own, and a `python3` for its hosts."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.launched import wait_until

ADDRESSES = ("127.0.0.2", "127.0.0.3")
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@dataclass
class Daemon:
    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"


def why_not() -> str | None:
    """Why sshd cannot be started here; None where it can."""
    if SSHD is None:
        return "sshd is not installed (Debian: openssh-server)"
    if shutil.which("ssh") is None:
        return "ssh is not installed (Debian: openssh-client)"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # it wants an empty folder to lock itself into
    return None


@contextlib.contextmanager
def ssh_daemon(folder: Path) -> Iterator[Daemon]:
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.create_server((ADDRESSES[0], 0)) as probe:
        port = probe.getsockname()[1]
    host_key = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text("".join(f"[{address}]:{port} {host_key}" for address in ADDRESSES))
    (folder / "sshd_config").write_text(
        f"Port {port}\n"
        + "".join(f"ListenAddress {address}\n" for address in ADDRESSES)
        + f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/user_key.pub\nPidFile none\n"
        "UsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\n"
    )
    (folder / "ssh_config").write_text(
        f"IdentityFile {folder}/user_key\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known_hosts\n"
        "StrictHostKeyChecking yes\n"
    )
    log = folder / "sshd.log"
    process = subprocess.Popen(
        [SSHD, "-D", "-f", folder / "sshd_config", "-E", log], stdin=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: is_open(port), lambda: log.read_text() if log.exists() else "", process)
        yield Daemon(folder, port, process)
    finally:
        process.terminate()
        process.wait()


def is_open(port: int) -> bool:
    for address in ADDRESSES:
        try:
            socket.create_connection((address, port), timeout=5).close()
        except OSError:
            return False
    return True


def write_python(path: Path) -> None:
    """A Python for the hosts, with stand-ins for the roles."""
    stand_in = Path(__file__).with_name("stand_in.py")
    path.write_text(
        f"""#!/bin/sh
for word in "$@"; do
  case "$word" in
    clickmill.launch.tether) break ;;
    pserver|trainer) shift 2; exec {sys.executable} {stand_in} "$@" ;;
  esac
done
exec {sys.executable} "$@"
"""
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
