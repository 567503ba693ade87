"""An S3 in this process, on a real socket."""

from __future__ import annotations

import contextlib
import itertools
import logging
import urllib.request
from collections.abc import Iterator

_buckets = itertools.count()


class S3Server:
    """Buckets, each for one test."""

    def __init__(self, url: str) -> None:
        self.url = url

    def variables(self) -> dict[str, str]:
        """What finds it, and is let in."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "something",
            "AWS_REGION": "us-east-1",
        }

    def new_bucket(self) -> str:
        """Its name."""
        name = f"bucket-{next(_buckets)}"
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request).close()
        return name


@contextlib.contextmanager
def s3_server(host: str = "127.0.0.1") -> Iterator[S3Server]:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address=host, port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
