"""A folder that is given out by a real server in this process."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from clickmill.errors import ClusterUnreachableError
from clickmill.jobs.files.server import FileServer
from clickmill.kube.proxy import PodAnswer

TOKEN = "a token for the files"


@dataclass
class Direct:
    """Speaks to a server as a proxy of an API server would; can lose connections."""

    port: int
    token: str | None = TOKEN
    num_lost: int = 0
    """Requests that are going to fail on the way."""
    num_asked: int = 0

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> PodAnswer:
        self.num_asked += 1
        if self.num_lost:
            self.num_lost -= 1
            raise ClusterUnreachableError("the connection was lost")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        own = {} if self.token is None else {"X-Clickmill-Token": self.token}
        query = f"?{urlencode(params)}" if params else ""
        connection.request(method, path + query, headers={**own, **(headers or {})})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return PodAnswer(answer.status, answer.headers, content)


@contextmanager
def served(folder: Path, token: str | None = TOKEN) -> Iterator[Direct]:
    with FileServer(folder, ("127.0.0.1", 0), token=token) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Direct(server.server_address[1], token)
        finally:
            server.shutdown()
            thread.join()
