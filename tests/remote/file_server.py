"""A small file server in a process of its own, which can be told to misbehave.

It lists folders, sends ranges, takes PUT and DELETE, and asks for a token where it was given one. What is
posted to `/_fault` makes the next answers fail: `{"times": 2, "status": 503}`, or with `"break_after": 1000`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    token = ""
    faults: ClassVar[list[dict[str, Any]]] = []
    requests: ClassVar[list[str]] = []

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fault = json.loads(body)
        if not fault["times"]:
            self.faults.clear()
            self.requests.clear()
        self.faults.extend([fault] * fault["times"])
        self._answer(HTTPStatus.NO_CONTENT)

    def do_HEAD(self) -> None:
        if self.path.endswith("signed=get"):
            self._answer(HTTPStatus.FORBIDDEN)
        else:
            self._serve(is_head=True)

    def do_GET(self) -> None:
        if self.path == "/_requests":
            self._answer(HTTPStatus.OK, json.dumps(self.requests).encode())
            self.requests.clear()
            return
        self._serve(is_head=False)

    def do_PUT(self) -> None:
        self.requests.append(f"{self.command} {self.path}")
        if self._is_stopped():
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = Path(self.translate_path(self.path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        except OSError:
            self._answer(HTTPStatus.CONFLICT)
            return
        self._answer(HTTPStatus.CREATED)

    def do_DELETE(self) -> None:
        self.requests.append(f"{self.command} {self.path}")
        if self._is_stopped():
            return
        path = Path(self.translate_path(self.path))
        is_there = path.is_file()
        path.unlink(missing_ok=True)
        self._answer(HTTPStatus.NO_CONTENT if is_there else HTTPStatus.NOT_FOUND)

    def _serve(self, *, is_head: bool) -> None:
        self.requests.append(f"{self.command} {self.path}")
        if self._is_stopped():
            return
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            super().do_HEAD() if is_head else super().do_GET()
            return
        if not path.is_file():
            self._answer(HTTPStatus.NOT_FOUND)
            return
        data = path.read_bytes()
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start = int(found[1]) if found else 0
        end = min(int(found[2]) + 1, len(data)) if found and found[2] else len(data)
        self.send_response(HTTPStatus.PARTIAL_CONTENT if found else HTTPStatus.OK)
        if found:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("ETag", f'"{path.stat().st_mtime_ns:x}-{len(data):x}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        if is_head:
            return
        if self.faults and "break_after" in self.faults[0]:
            end = min(end, start + self.faults.pop(0)["break_after"])
            self.close_connection = True
        self.wfile.write(data[start:end])

    def _is_stopped(self) -> bool:
        """Whether the request has been answered already, with a refusal."""
        if self.token and self.headers.get("Authorization") != f"Bearer {self.token}":
            self._answer(HTTPStatus.UNAUTHORIZED)
            return True
        fault = next((each for each in self.faults if "status" in each and self._is_meant(each)), None)
        if fault is None:
            return False
        self.faults.remove(fault)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(HTTPStatus(fault["status"]))
        return True

    def _is_meant(self, fault: dict[str, Any]) -> bool:
        """Whether a fault is for this request: for any, or for that of a whole file of some name."""
        name = fault.get("whole")
        is_whole = self.command == "GET" and "Range" not in self.headers
        return name is None or (is_whole and self.path.endswith(f"/{name}"))

    def _answer(self, status: HTTPStatus, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class FileServer:
    """The process, as tests see it."""

    def __init__(self, root: Path, host: str, folder: str = "") -> None:
        self.root = root
        self._host = host
        self._folder = folder
        self.url = f"{host}{folder}"

    def below(self, name: str) -> FileServer:
        """A folder of it, which forgets what it was told before."""
        (self.root / name).mkdir()
        self.fail(times=0)
        return FileServer(self.root / name, self._host, f"{self._folder}/{name}")

    def fail(self, **fault: Any) -> None:
        """Let the next answers fail."""
        urllib.request.urlopen(f"{self._host}/_fault", json.dumps({"times": 1, **fault}).encode()).close()

    def requests(self) -> list[str]:
        """What was asked for since the last time: `GET /path`."""
        with urllib.request.urlopen(f"{self._host}/_requests") as answer:
            return [each.replace(self._folder, "", 1) for each in json.load(answer)]


@contextlib.contextmanager
def file_server(root: Path, *, token: str = "", host: str = "127.0.0.1") -> Iterator[FileServer]:
    """Serves `root`, on a port that the system chooses."""
    root.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, str(root), host]
    environ = {**os.environ, "TOKEN": token}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        try:
            yield FileServer(root, process.stdout.readline().strip())
        finally:
            process.kill()


def main() -> None:
    root, host = sys.argv[1:]
    Handler.token = os.environ.get("TOKEN", "")
    server = ThreadingHTTPServer((host, 0), lambda *arguments: Handler(*arguments, directory=root))
    sys.stdout.write(f"http://{host}:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
