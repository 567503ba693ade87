"""A server on this machine that answers as an API server does, for what a real one cannot be made to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster as ClusterEntry
from lightkube.config.models import User

from clickmill.kube.client import Cluster
from clickmill.kube.kubeconfig import Account


@dataclass
class Request:
    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: Any


Answer = tuple[int, Any]


def status(code: int, reason: str, message: str) -> Answer:
    """How an API server says no."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return code, {**body, "code": code, "reason": reason, "message": message}


@dataclass
class ApiServer:
    answer: Callable[[Request], Answer]
    requests: list[Request] = field(default_factory=list)
    address: str = ""
    clusters: list[Cluster] = field(default_factory=list)

    def cluster(self, namespace: str = "") -> Cluster:
        config = KubeConfig.from_one(
            cluster=ClusterEntry(server=self.address), user=User(token="t"), namespace="team"
        ).get()
        assert config is not None
        self.clusters.append(Cluster(Account(config, "a test"), namespace))
        return self.clusters[-1]


@contextmanager
def serving(answer: Callable[[Request], Answer]) -> Iterator[ApiServer]:
    """An API server that says what `answer` says."""
    server = ApiServer(answer)

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            parts = urlsplit(self.path)
            request = Request(
                self.command,
                parts.path,
                dict(parse_qsl(parts.query)),
                dict(self.headers.items()),
                json.loads(text) if text else None,
            )
            server.requests.append(request)
            code, body = server.answer(request)
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

        def log_message(self, *_: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.address = f"http://127.0.0.1:{listener.server_port}"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        for cluster in server.clusters:
            cluster.close()
        listener.shutdown()
        thread.join()
        listener.server_close()
