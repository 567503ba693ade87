from __future__ import annotations

import contextlib
import logging
import subprocess
import sys

import pytest
from tests.remote.contract import StoreContract, names, put
from tests.remote.file_server import file_server

from clickmill.errors import AccessError, DataError, RemoteError
from clickmill.store.remote.finding import find_remote
from clickmill.store.remote.http_store import _names, _Page
from clickmill.store.remote.opening import open_store
from clickmill.store.remote.transfer import download


class TestHttp(StoreContract):
    @pytest.fixture(name="base")
    def _base(self, web):
        return f"{web.url}/some/where"


@contextlib.contextmanager
def plain_server(root):
    """Python's own, which lists folders and knows no ranges."""
    command = [
        sys.executable,
        "-u",
        "-m",
        "http.server",
        "0",
        "--bind",
        "127.0.0.1",
        "--directory",
        str(root),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().partition("(")[2].partition("/)")[0]
        finally:
            process.kill()


def test_a_server_without_ranges_will_do(tmp_path, own_cache):
    folder = tmp_path / "served" / "days"
    folder.mkdir(parents=True)
    data = bytes(range(256)) * 300
    for name in ("day 1.bin", "day 2.bin"):
        (folder / name).write_bytes(data)
    with plain_server(tmp_path / "served") as url:
        first, second = find_remote(f"{url}/days")
        assert names([first, second]) == ["day 1.bin", "day 2.bin"]
        assert names(find_remote(f"{url}/days/day%202.bin")) == ["day 2.bin"]
        store = open_store(first.place)
        assert b"".join(store.read(first, 1000, 2000)) == data[1000:2000]
        download(second, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == data


def test_a_broken_connection_is_taken_up_where_it_broke(web, tmp_path, caplog):
    data = bytes(range(256)) * 2000
    file = put(f"{web.url}/data", data, tmp_path)
    web.fail(break_after=300_000)
    web.fail(status=503)
    with caplog.at_level(logging.WARNING):
        download(file, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    assert "503 Service Unavailable" in caplog.text


def test_what_is_refused_is_told_without_the_token(tmp_path, own_cache, monkeypatch):
    with file_server(tmp_path / "closed", token="open sesame") as web:
        (web.root / "file").write_text("1")
        monkeypatch.setenv("CLICKMILL_HTTP_TOKEN", "wrong word")
        with pytest.raises(AccessError, match="no access: 401 Unauthorized") as caught:
            find_remote(f"{web.url}/file")
        assert "wrong word" not in f"{caught.value} {caught.value.hint}"
        assert "CLICKMILL_HTTP_TOKEN" in str(caught.value.hint)
        monkeypatch.delenv("CLICKMILL_HTTP_TOKEN")
        (tmp_path / "token").write_text("open sesame\n")
        monkeypatch.setenv("CLICKMILL_HTTP_TOKEN_FILE", str(tmp_path / "token"))
        assert names(find_remote(f"{web.url}/file")) == ["file"]
        # A URL that says itself who asks gets no token.
        with pytest.raises(AccessError, match="no access: 401 Unauthorized"):
            find_remote(f"{web.url}/file?signature=1")


def test_nothing_is_tried_again_that_cannot_work(web):
    web.fail(status=400)
    with pytest.raises(RemoteError, match="the server answers 400 Bad Request"):
        find_remote(f"{web.url}/file")
    with pytest.raises(DataError, match="no such file"):
        find_remote(f"{web.url}/file")


def test_a_signed_url_is_one_file_and_is_shown_without_its_signature(web, tmp_path):
    (web.root / "file*").write_text("12")
    (file,) = find_remote(f"{web.url}/file*?signature=secret&signed=get")
    assert (file.name, file.num_bytes) == ("file*", 2)
    assert str(file) == f"{web.url}/file*?…"
    download(file, tmp_path / "back")
    assert (tmp_path / "back").read_text() == "12"


def page(kind, text):
    return _names(_Page("http://host/data/", kind, text))


def test_listings_of_known_servers_are_read():
    nginx = """<html><head><title>Index of /data/</title></head><body><h1>Index of /data/</h1><hr><pre>
    <a href="../">../</a>
    <a href="day%201/">day 1/</a>         18-Nov-2026 01:00       -
    <a href="part-0.gz">part-0.gz</a>     18-Nov-2026 01:00    1024
    </pre><hr></body></html>"""
    assert page("text/html", nginx) == ["day 1/", "part-0.gz"]
    apache = """<a href="?C=N;O=D">Name</a><a href="/">Parent Directory</a>
    <a href="/data/part-0.gz">part-0.gz</a><a href="https://elsewhere/data/x">x</a><a href="a/b">b</a>"""
    assert page("text/html;charset=utf-8", apache) == ["part-0.gz"]
    nginx_json = '[{"name": "day 1", "type": "directory"}, {"name": "part-0.gz", "type": "file", "size": 1}]'
    assert page("application/json", nginx_json) == ["day 1/", "part-0.gz"]
    with pytest.raises(RemoteError, match="no listing of a folder, but text/plain"):
        page("text/plain", "part-0.gz")
