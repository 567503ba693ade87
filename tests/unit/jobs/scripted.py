"""A coordinator that says what it is told to say: what a real one comes to with trainers and disks alone."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Status = dict[str, Any]


def running(**changes: Any) -> Status:
    """The status of a run that trains."""
    snapshot = {"committed": 7, "bytes": 1, "age_s": 3, "in_progress": None, "failure": None}
    status = {
        "phase": "running", "strategy": "async", "pass": 0, "num_passes": 2, "stage": "train",
        "units_done": 1, "units": 4, "samples": 500, "batches": 5, "epoch": 1, "fence": 10,
        "wanted_fence": None, "waiting": [], "scaling_to": None, "scaling_waits_for": [],
        "scaling_failure": None, "num_servers": 1, "servers": [], "trainers": [], "duties": [],
        "metrics": None, "snapshot": snapshot,
    }  # fmt: skip
    for key, value in changes.items():
        if key in snapshot:
            snapshot[key] = value
        else:
            status[key] = value
    return status


def wait(kind: str, whom: str, for_s: int, **more: Any) -> Status:
    """Something that it waits for."""
    told = {"kind": kind, "member": None, "whom": whom, "words": f"waiting for {whom}", "for_s": for_s}
    return told | {"advice": None, "lost_s": None} | more


class Coordinator:
    """`status` is what it tells; `on_order` may change that."""

    def __init__(self, status: Status, on_order: Callable[[str, Coordinator], None]) -> None:
        self.status = status
        self.orders: list[str] = []
        self._on_order = on_order
        self.port = 0

    def obey(self, path: str) -> None:
        self.orders.append(path)
        self._on_order(path, self)


@contextmanager
def scripted(status: Status, on_order: Callable[[str, Coordinator], None]) -> Iterator[Coordinator]:
    """A coordinator that listens until the block ends."""
    coordinator = Coordinator(status, on_order)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(coordinator.status)

        def do_POST(self) -> None:
            coordinator.obey(self.path)
            self._send({"kind": "accepted", "words": "as you wish"})

        def log_message(self, *_: Any) -> None:
            pass

        def _send(self, body: Any) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    coordinator.port = listener.server_port
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield coordinator
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()
