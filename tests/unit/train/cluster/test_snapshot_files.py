"""Files of snapshots that a trainer gets over the wire, from a real server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.pserver import start_pserver

from clickmill import _core
from clickmill.errors import WireError
from clickmill.ps.wire import wire_settings
from clickmill.train.cluster import snapshot_files
from clickmill.train.cluster.snapshot_files import Servers

LINK = _core.ControlLink
PIECE = 4 << 20
NAME = "commit.json"


@pytest.fixture
def server(tmp_path):
    started = start_pserver(tmp_path / "theirs", 0, 1, None)
    yield started
    started.stop()


def fetch(server: _core.Pserver, path: Path) -> bytes:
    wire = wire_settings("trainer", "trainer 0", token=None)
    Servers(wire, server.address, lambda: [server.address]).fetch(server.address, NAME, path)
    return path.read_bytes()


def write(folder: Path, content: bytes) -> None:
    """As the coordinator does: beside its place, then into it."""
    folder.mkdir(exist_ok=True)
    (folder / "new").write_bytes(content)
    (folder / "new").rename(folder / NAME)


@pytest.mark.parametrize("size", [0, 1, PIECE, 2 * PIECE + 5])
def test_a_file_comes_whole(server, tmp_path, size):
    content = os.urandom(size)
    write(tmp_path / "theirs", content)
    assert fetch(server, tmp_path / "mine") == content


class Meddling:
    """A link on which something happens to the file after each piece."""

    def __init__(self, happens):
        self.happens = happens

    def __call__(self, settings: str, address: str):
        self.link = LINK(settings, address)
        return self

    def ask(self, request: str, deadline_ms: int) -> str:
        answer = self.link.ask(request, deadline_ms)
        self.happens()
        return answer


@pytest.mark.parametrize("size", [PIECE + 5, 2 * PIECE + 5, 3])
def test_a_file_that_is_replaced_meanwhile_is_the_new_one(server, tmp_path, monkeypatch, size):
    old, new = os.urandom(2 * PIECE + 5), os.urandom(size)
    write(tmp_path / "theirs", old)
    left = [new]

    def once() -> None:
        if left:
            write(tmp_path / "theirs", left.pop())

    monkeypatch.setattr(snapshot_files._core, "ControlLink", Meddling(once))
    assert fetch(server, tmp_path / "mine") == new


def test_a_file_that_is_replaced_for_ever_is_told(server, tmp_path, monkeypatch):
    content = os.urandom(PIECE + 1)
    write(tmp_path / "theirs", content)
    meddling = Meddling(lambda: write(tmp_path / "theirs", content))
    monkeypatch.setattr(snapshot_files._core, "ControlLink", meddling)
    with pytest.raises(WireError, match=r"commit\.json.*was written anew"):
        fetch(server, tmp_path / "mine")
