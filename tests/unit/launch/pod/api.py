"""A small API server: pods and Secrets over HTTPS, with versions, watches and rights."""

from __future__ import annotations

import base64
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from clickmill.launch.address import Address
from clickmill.launch.pod.api_server import ApiServer

Json = dict[str, Any]

NAMESPACE = "shop"


class FakeApi:
    """What it holds, and what it was asked."""

    def __init__(self, server: ThreadingHTTPServer, account: Path) -> None:
        self.address = Address("127.0.0.1", server.server_address[1])
        self.account = account
        self.pods: dict[str, Json] = {}
        self.secrets: dict[str, Json] = {}
        self.config_maps: dict[str, Json] = {}
        self.forbidden: set[str] = set()
        """`list pods`, `get secrets`, ..."""
        self.asked: list[str] = []
        self.changed = threading.Condition()
        self.version = 1
        self.events: list[tuple[int, str, Json]] = []

    def client(self) -> ApiServer:
        return ApiServer(self.address, self.account)

    def environ(self) -> dict[str, str]:
        return {
            "KUBERNETES_SERVICE_HOST": self.address.host,
            "KUBERNETES_SERVICE_PORT": str(self.address.port),
            "CLICKMILL_SERVICE_ACCOUNT": str(self.account),
        }

    def put_pod(self, pod: Json) -> None:
        with self.changed:
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)
            kind = "MODIFIED" if pod["metadata"]["name"] in self.pods else "ADDED"
            self.pods[pod["metadata"]["name"]] = pod
            self.events.append((self.version, kind, pod))
            self.changed.notify_all()

    def add_secret(self, name: str, data: Json | None = None) -> None:
        self.secrets[name] = {"kind": "Secret", "metadata": {"name": name, "resourceVersion": "1"}}
        if data is not None:
            self.secrets[name]["data"] = data

    def wait_until_asked(self, what: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: what in self.asked, timeout=30), self.asked


def pod(
    name: str,
    role: str = "pserver",
    *,
    phase: str = "Running",
    state: Json | None = None,
    labels: Json | None = None,
    ip: str = "127.0.0.1",
    last: Json | None = None,
    restarts: int = 0,
    owner: str = "job-1",
    **status: Any,
) -> Json:
    """As Kubernetes describes one."""
    given = {"app.kubernetes.io/instance": "ctr", "clickmill.io/role": role}
    if state is None:
        state = {"running": {}} if phase == "Running" else {}
    container = {"state": state, "lastState": last or {}, "restartCount": restarts}
    return {
        "metadata": {
            "name": name,
            "labels": given if labels is None else labels,
            "creationTimestamp": "2026-11-18T01:00:00Z",
            "ownerReferences": [{"uid": owner, "kind": "Job", "name": "ctr-volcano"}],
        },
        "spec": {"containers": [{"image": "clickmill:dev"}], "nodeName": "n1"},
        "status": {"phase": phase, "podIP": ip, "containerStatuses": [container] if state else [], **status},
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: FakeApi

    def do_GET(self) -> None:
        self._answer("get")

    def do_PUT(self) -> None:
        self._answer("update")

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, verb: str) -> None:
        api = self.api
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        assert self.headers["Authorization"] == f"Bearer {(api.account / 'token').read_text().strip()}"
        _, _, _, _, namespace, kind, *rest = url.path.split("/")
        assert namespace == NAMESPACE
        verb = verb if rest else "watch" if "watch" in query else "list"
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        with api.changed:
            api.asked.append(f"{verb} {kind}")
            api.changed.notify_all()
        if f"{verb} {kind}" in api.forbidden:
            user = "system:serviceaccount:shop:robot"
            self._send(
                403, {"message": f'{kind} is forbidden: User "{user}" cannot {verb} resource "{kind}"'}
            )
        elif kind == "secrets":
            self._stored(verb, rest[0], body, api.secrets)
        elif kind == "configmaps":
            self._stored(verb, rest[0], body, api.config_maps)
        elif verb == "watch":
            self._watch(query)
        elif rest:
            found = api.pods.get(rest[0])
            self._send(200, found) if found else self._send(404, {"message": f'pods "{rest[0]}" not found'})
        else:
            with api.changed:
                phase = query.get("fieldSelector", "").rpartition("=")[2]
                items = [
                    each
                    for each in api.pods.values()
                    if _fits(each, query["labelSelector"]) and phase in {"", each["status"]["phase"]}
                ]
                listed = {"metadata": {"resourceVersion": str(api.version)}, "items": items}
            self._send(200, listed)

    def _stored(self, verb: str, name: str, body: Json, items: dict[str, Json]) -> None:
        """Read or replace one of `items`."""
        with self.api.changed:
            found = items.get(name)
            if found is None:
                self._send(404, {"message": f'secrets "{name}" not found'})
                return
            if verb == "update":
                version = found["metadata"]["resourceVersion"]
                if body["metadata"]["resourceVersion"] != version:
                    self._send(409, {"message": "the object has been modified"})
                    return
                body["metadata"]["resourceVersion"] = str(int(version) + 1)
                items[name] = found = body
                self.api.changed.notify_all()
            self._send(200, found)

    def _watch(self, query: Json) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        seen = int(query["resourceVersion"])
        api = self.api
        with api.changed:
            # Of a list that only grows, what was not sent yet.
            sent = sum(version <= seen for version, _, _ in api.events)
            while True:
                for _, kind, each in api.events[sent:]:
                    self.wfile.write(json.dumps({"type": kind, "object": each}).encode() + b"\n")
                    self.wfile.flush()
                sent = len(api.events)
                if not api.changed.wait(timeout=float(query["timeoutSeconds"])):
                    return

    def _send(self, status: int, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _fits(each: Json, selector: str) -> bool:
    labels = each["metadata"].get("labels") or {}
    return all(
        labels.get(key) == value for key, _, value in (part.partition("=") for part in selector.split(","))
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that has what it wanted hangs up."""


def has_openssl() -> bool:
    return shutil.which("openssl") is not None


def make_account(folder: Path) -> None:
    """As Kubernetes mounts it: a token that names the account, and the authority of the API server."""
    command = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    extensions = ("-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE")
    files = (
        "-subj",
        "/CN=api",
        "-days",
        "2",
        "-keyout",
        str(folder / "key.pem"),
        "-out",
        str(folder / "ca.crt"),
    )
    subprocess.run([*command, *extensions, *files], check=True, capture_output=True)
    payload = base64.urlsafe_b64encode(b'{"sub":"system:serviceaccount:shop:robot"}').rstrip(b"=").decode()
    (folder / "token").write_text(f"head.{payload}.tail\n")


@contextmanager
def serving(account: Path) -> Iterator[FakeApi]:
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(account / "ca.crt", account / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    api = handler.api = FakeApi(server, account)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
