"""A TCP proxy on this machine that holds up what goes one way."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Proxy:
    """Forwards connections to `target`; every piece of `slow` (`there` or `back`) waits for so long."""

    def __init__(self, target: str, slow: str, seconds: float) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._slow = slow
        self._seconds = seconds
        self._is_over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                for source, sink, way in ((near, far, "there"), (far, near, "back")):
                    threading.Thread(target=self._forward, args=(source, sink, way), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError), source, sink:
            while piece := source.recv(1 << 20):
                if way == self._slow:
                    self._is_over.wait(self._seconds)
                sink.sendall(piece)

    def close(self) -> None:
        self._is_over.set()
        self._listener.close()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def proxy(target: str, slow: str, seconds: float) -> Iterator[Proxy]:
    running = Proxy(target, slow, seconds)
    try:
        yield running
    finally:
        running.close()
