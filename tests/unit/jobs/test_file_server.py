"""What `clickmill pod-files` gives out, and what it does not, over real connections."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
from pathlib import Path

import pytest

from clickmill.errors import ConfigError, PortTakenError, StorageError
from clickmill.jobs.files import server as module
from clickmill.jobs.files.server import FileServer
from tests.unit.jobs.serving import TOKEN, Direct, served


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run, beside which lies what is nobody's business."""
    (tmp_path / "secret").write_text("not yours")
    run = tmp_path / "run"
    (run / "checkpoints" / "0").mkdir(parents=True)
    (run / "checkpoints" / "0" / "checkpoint.json").write_text("{}")
    (run / "journal.jsonl").write_bytes(bytes(range(256)) * 10)
    (run / ".lock").write_text("1")
    (run / "checkpoints" / ".1.partial-7").mkdir()
    (run / "checkpoints" / ".1.partial-7" / "checkpoint.json").write_text("{}")
    (run / "way-out").symlink_to(tmp_path)
    (run / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(run / "pipe")
    return run


def paths(direct: Direct, path: str = "") -> list[str]:
    answer = direct.ask("/files", params={"path": path})
    assert answer.code == 200, answer.words
    return [entry["path"] for entry in json.loads(answer.content)["files"]]


def test_whole_files_are_listed_and_nothing_else(run):
    with served(run) as direct:
        assert paths(direct) == ["checkpoints/0/checkpoint.json", "journal.jsonl"]
        assert paths(direct, "checkpoints") == ["checkpoints/0/checkpoint.json"]
        assert paths(direct, "journal.jsonl") == ["journal.jsonl"]
        assert direct.ask("/files", params={"path": "nowhere"}).code == 404


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "/etc/passwd",
        "checkpoints/../../secret",
        "link",
        "way-out/secret",
        ".lock",
        "checkpoints/.1.partial-7/checkpoint.json",
        "pipe",
        "checkpoints",
        "",
        "journal.jsonl/x",
        "journal.jsonl\0",
        "%2e%2e/secret",
    ],
)
def test_no_path_leads_out_or_to_what_is_not_whole(run, path):
    with served(run) as direct:
        answer = direct.ask("/file", params={"path": path})
        assert answer.code == 404
        assert b"not yours" not in answer.content


@pytest.mark.parametrize("path", ["..", "way-out", "link", "/", "."])
def test_no_listing_leads_out(run, path):
    with served(run) as direct:
        assert direct.ask("/files", params={"path": path}).code == 404


def test_a_piece_comes_with_its_digest(run):
    with served(run) as direct:
        answer = direct.ask("/file", params={"path": "journal.jsonl"}, headers={"Range": "bytes=10-19"})
        assert (answer.code, answer.content) == (206, bytes(range(10, 20)))
        assert answer.headers["Content-Range"] == "bytes 10-19/2560"
        assert answer.headers["X-Clickmill-Sha256"] == hashlib.sha256(bytes(range(10, 20))).hexdigest()
        head = direct.ask(
            "/file", method="HEAD", params={"path": "journal.jsonl"}, headers={"Range": "bytes=10-19"}
        )
        assert (head.code, head.content) == (206, b"")
        assert head.headers["X-Clickmill-Sha256"] == answer.headers["X-Clickmill-Sha256"]
        assert direct.ask("/file", params={"path": "journal.jsonl"}).content == bytes(range(256)) * 10


def test_a_piece_ends_where_the_file_or_the_patience_does(run, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 100)
    with served(run) as direct:

        def piece(text: str) -> tuple[int, int]:
            answer = direct.ask("/file", params={"path": "journal.jsonl"}, headers={"Range": text})
            return answer.code, len(answer.content)

        assert piece("bytes=0-999999999") == (206, 100)
        assert piece("bytes=2559-9999") == (206, 1)
        for wrong in (
            "bytes=2560-2561",
            "bytes=5-2",
            "bytes=-5",
            "bytes=0-1,4-5",
            "lines=1-2",
            "bytes=1-" + 99 * "9",
        ):
            assert piece(wrong)[0] == 416, wrong


def test_a_file_that_was_replaced_is_not_taken_for_the_first_one(run):
    with served(run) as direct:
        tag = direct.ask("/file", params={"path": "journal.jsonl"}).headers["ETag"]
        headers = {"Range": "bytes=0-9", "If-Match": tag}
        assert direct.ask("/file", params={"path": "journal.jsonl"}, headers=headers).code == 206
        (run / "journal.new").write_bytes(b"another")
        (run / "journal.new").rename(run / "journal.jsonl")
        assert direct.ask("/file", params={"path": "journal.jsonl"}, headers=headers).code == 412


def test_only_the_token_opens(run):
    with served(run) as direct:
        for token in (None, "another token than that", TOKEN[:-1]):
            direct.token = token
            assert direct.ask("/files").code == 401
            assert direct.ask("/healthz").code == 200
        assert direct.ask("/files", headers={"Authorization": f"Bearer {TOKEN}"}).code == 200


def test_other_methods_and_pages_are_refused(run):
    with served(run) as direct:
        assert direct.ask("/file", method="PUT", params={"path": "x"}).code == 501
        assert direct.ask("/file", method="DELETE", params={"path": "journal.jsonl"}).code == 501
        assert direct.ask("/other").code == 404
        assert (run / "journal.jsonl").exists()


def test_beyond_this_machine_a_token_is_needed(run):
    with pytest.raises(ConfigError, match="no token"):
        FileServer(run, ("0.0.0.0", 0), token=None)
    with pytest.raises(ConfigError, match="16 or more"):
        FileServer(run, ("127.0.0.1", 0), token="short")
    FileServer(run, ("0.0.0.0", 0), token=None, is_insecure=True).server_close()


def test_a_folder_or_a_port_that_cannot_be_had_is_told(run):
    with pytest.raises(StorageError, match="nowhere"):
        FileServer(run / "nowhere", ("127.0.0.1", 0), token=TOKEN)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(PortTakenError, match="cannot listen"),
    ):
        FileServer(run, ("127.0.0.1", taken.getsockname()[1]), token=TOKEN)


def test_more_connections_than_places_are_closed(run):
    with served(run) as direct:
        held = [socket.create_connection(("127.0.0.1", direct.port)) for _ in range(8)]
        try:
            # Threads take connections in the order in which they came; the next one finds no place.
            with socket.create_connection(("127.0.0.1", direct.port)) as one_more:
                one_more.settimeout(30)
                assert one_more.recv(1) == b""
        finally:
            for each in held:
                each.close()


def test_it_ends_when_nobody_asks(run):
    with FileServer(run, ("127.0.0.1", 0), token=TOKEN) as server:
        thread = threading.Thread(target=server.serve_until_idle, args=(0.2,))
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
