"""Members of which some encrypt and some do not: they part at once, and say what to do about it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from clickmill.cli.exits import USAGE
from clickmill.errors import ConfigError
from clickmill.ps.admin import Admin
from tests.cluster.running import cluster

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")

EXPECTS_TLS = "this server expects TLS: set `cluster.tls`"


def make_certificate(folder: Path) -> dict[str, str]:
    """A certificate that is its own authority."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    # As an authority alone it would not be taken for the certificate of a server.
    extensions = ("-addext", "subjectAltName=DNS:clickmill", "-addext", "basicConstraints=critical,CA:FALSE")
    files = ("-subj", "/CN=clickmill", "-days", "2", "-keyout", str(key), "-out", str(certificate))
    subprocess.run([*command, *extensions, *files], check=True, capture_output=True)
    return {
        "certificate": str(certificate),
        "key": str(key),
        "authority": str(certificate),
        "server_name": "clickmill",
    }


def arguments(tls: dict[str, str]) -> list[str]:
    return [word for name, value in tls.items() for word in (f"--tls-{name.replace('_', '-')}", value)]


@pytest.mark.timeout(120)
def test_a_server_that_encrypts_sends_those_away_who_do_not(tmp_path):
    tls = make_certificate(tmp_path)
    with cluster(tmp_path, samples=20) as running:
        running.pserver("--index", "0", "--pservers", "2", *arguments(tls))
        assert Admin(running.address, token=None, tls=tls).status()["epoch"] == 0
        with pytest.raises(ConfigError, match=f"^{running.address}: {EXPECTS_TLS}"):
            running.admin.status()
        for process in (running.trainer(), running.pserver("--index", "1")):
            assert process.wait() == USAGE, process.words
            assert f"{running.address}: {EXPECTS_TLS}" in process.words


@pytest.mark.timeout(120)
def test_a_server_that_does_not_encrypt_sends_those_away_who_do(tmp_path):
    tls = make_certificate(tmp_path)
    with cluster(tmp_path, samples=20) as running:
        running.pserver("--index", "0", "--pservers", "2")
        words = "this server does not use TLS: start it with --tls-certificate"
        with pytest.raises(ConfigError, match=f"^{running.address}: {words}"):
            Admin(running.address, token=None, tls=tls).status()
        process = running.pserver("--index", "1", *arguments(tls))
        assert process.wait() == USAGE, process.words
        assert f"{running.address}: {words}" in process.words
        assert "TLS to all of them or to none" in process.words
