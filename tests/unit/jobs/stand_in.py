"""An API server that holds objects in memory, for what a real one cannot be brought to in a unit test.

It lists by labels, guards writes by versions, streams logs line by line, and hands what is asked of a pod on
to whatever listens for it on this machine.
"""

from __future__ import annotations

import copy
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster as ClusterEntry
from lightkube.config.models import User

from clickmill.kube import kinds
from clickmill.kube.client import Cluster
from clickmill.kube.kinds import Kind, kind_of
from clickmill.kube.kubeconfig import Account

Object = dict[str, Any]
NAMESPACE = "team"
_KINDS = [each for each in vars(kinds).values() if isinstance(each, Kind)]


@dataclass
class Log:
    """What a container writes; a follower gets what comes later until it is closed."""

    lines: list[str] = field(default_factory=list)
    is_closed: bool = True
    num_followers: int = 0


@dataclass
class StandIn:
    """The cluster."""

    objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    """By plural with group, namespace, name."""
    logs: dict[str, Log] = field(default_factory=dict)
    previous_logs: dict[str, list[str]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    """Where what a pod would answer is answered, by the name of the pod."""
    forbidden: set[str] = field(default_factory=set)
    """Resources that nobody may look at."""
    denied: set[tuple[str, str]] = field(default_factory=set)
    """Verbs on resources that whoever asks is told to lack."""
    held: set[str] = field(default_factory=set)
    """Pods that do not end when what made them is deleted, as on a node that does not answer."""
    conflicts: int = 0
    """Writes that are going to be told that somebody else was faster."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    address: str = ""
    versions: int = 0

    def cluster(self) -> Cluster:
        config = KubeConfig.from_one(
            cluster=ClusterEntry(server=self.address), user=User(token="t"), namespace=NAMESPACE
        ).get()
        assert config is not None
        return Cluster(Account(config, "a test"))

    def add(self, *items: Object) -> None:
        """Objects as they stand in YAML; what a server fills in is filled in."""
        with self.changed:
            for item in map(copy.deepcopy, items):
                kind = kind_of(item)
                metadata = item["metadata"]
                if kind.is_namespaced:
                    metadata.setdefault("namespace", NAMESPACE)
                metadata.setdefault("uid", f"uid-{metadata['name']}")
                metadata.setdefault("creationTimestamp", "2026-01-31T08:00:00Z")
                self.versions += 1
                metadata["resourceVersion"] = str(self.versions)
                self.objects[_key(kind, metadata.get("namespace", ""), metadata["name"])] = item
            self.changed.notify_all()

    def get(self, kind: Kind, name: str) -> Object | None:
        return self.objects.get(_key(kind, NAMESPACE if kind.is_namespaced else "", name))

    def remove(self, kind: Kind, name: str) -> None:
        with self.changed:
            self.objects.pop(_key(kind, NAMESPACE if kind.is_namespaced else "", name), None)
            self.changed.notify_all()

    def names(self, kind: Kind) -> list[str]:
        return sorted(name for (plural, _, name) in self.objects if plural == kind.resource)

    def say(self, pod: str, *lines: str, is_closed: bool = False) -> None:
        """More lines of a pod, each with its time in front."""
        with self.changed:
            log = self.logs.setdefault(pod, Log())
            log.lines += lines
            log.is_closed = is_closed
            self.changed.notify_all()


def _key(kind: Kind, namespace: str, name: str) -> tuple[str, str, str]:
    return kind.resource, namespace, name


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """A cluster until the block ends."""
    state = StandIn()

    class Handler(_Requests):
        pass

    Handler.state = state
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    state.address = f"http://127.0.0.1:{listener.server_port}"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


class _Requests(BaseHTTPRequestHandler):
    state: StandIn

    def do(self) -> None:
        url = urlsplit(self.path)
        self.parameters = dict(parse_qsl(url.query))
        self.state.requests.append((self.command, url.path))
        length = int(self.headers.get("Content-Length") or 0)
        self.body = json.loads(text) if (text := self.rfile.read(length)) else None
        parts = url.path.strip("/").split("/")
        if "proxy" in parts:
            self._proxy(parts, url.query)
            return
        kind, namespace, name, rest = _place(parts)
        if kind.resource in self.state.forbidden:
            self._refuse(403, "Forbidden", f'User "u" cannot get resource "{kind.plural}" in API group ""')
        elif rest == "log":
            self._log(name)
        else:
            with self.state.changed:
                self._objects(kind, namespace, name)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do

    def log_message(self, *_: Any) -> None:
        pass

    def _objects(self, kind: Kind, namespace: str, name: str) -> None:
        state, key = self.state, _key(kind, namespace, name)
        if self.command == "GET" and not name:
            self._answer(200, {"items": self._listed(kind, namespace), "metadata": {}})
        elif self.command == "POST" and kind == kinds.ACCESS_REVIEW:
            self._review()
        elif self.command == "POST":
            assert self.body is not None
            if _key(kind, namespace, self.body["metadata"]["name"]) in state.objects:
                self._refuse(409, "AlreadyExists", "it is there already")
                return
            item = {"apiVersion": kind.api_version, "kind": kind.name, **self.body}
            item["metadata"].setdefault("namespace", namespace)
            state.add(item)
            self._answer(201, state.objects[_key(kind, namespace, item["metadata"]["name"])])
        elif key not in state.objects:
            self._refuse(404, "NotFound", f"{kind.plural} `{name}` not found")
        elif self.command == "GET":
            self._answer(200, state.objects[key])
        elif self.command == "DELETE":
            self._delete(kind, key)
        else:
            self._write(key)

    def _review(self) -> None:
        assert self.body is not None
        asked = self.body["spec"]["resourceAttributes"]
        resource = ".".join(filter(None, (asked["resource"], asked["group"])))
        resource = "/".join(filter(None, (resource, asked["subresource"])))
        is_allowed = (asked["verb"], resource) not in self.state.denied
        self._answer(201, {**self.body, "status": {"allowed": is_allowed}})

    def _write(self, key: tuple[str, str, str]) -> None:
        state = self.state
        old = state.objects[key]
        assert self.body is not None
        if state.conflicts:
            state.conflicts -= 1
            self._refuse(409, "Conflict", "the object has been modified")
            return
        if self.command == "PUT":
            if self.body["metadata"].get("resourceVersion") != old["metadata"]["resourceVersion"]:
                self._refuse(409, "Conflict", "the object has been modified")
                return
            state.add(self.body)
        else:
            state.add(_merged(old, self.body))
        self._answer(200, state.objects[key])

    def _delete(self, kind: Kind, key: tuple[str, str, str]) -> None:
        """With what it owns: pods of a job go with it."""
        state = self.state
        item = state.objects.pop(key)
        if kind in {kinds.VOLCANO_JOB, kinds.JOB}:
            labels = item["metadata"].get("labels") or {}
            instance = labels.get("app.kubernetes.io/instance")
            for each in [place for place, pod in state.objects.items() if place[0] == "pods"]:
                pod = state.objects[each]
                if pod["metadata"].get("labels", {}).get("app.kubernetes.io/instance") != instance:
                    continue
                if pod["metadata"]["name"] in state.held:
                    pod["metadata"].setdefault("deletionTimestamp", "2999-12-31T08:00:00Z")
                else:
                    state.objects.pop(each)
        owned = [
            place
            for place, each in state.objects.items()
            if any(
                owner["uid"] == item["metadata"]["uid"]
                for owner in each["metadata"].get("ownerReferences", ())
            )
        ]
        for place in owned:
            state.objects.pop(place)
        self._answer(200, {"kind": "Status", "status": "Success"})

    def _listed(self, kind: Kind, namespace: str) -> list[Object]:
        wanted = _selector(self.parameters.get("labelSelector"))
        fields = _selector(self.parameters.get("fieldSelector"))
        found = []
        for (resource, place, _), item in self.state.objects.items():
            labels = item["metadata"].get("labels") or {}
            if (
                resource == kind.resource
                and (not namespace or place == namespace)
                and all(labels.get(key) == value for key, value in wanted.items())
                and all(item.get(key) == value for key, value in fields.items())
            ):
                found.append(item)
        return found

    def _log(self, pod: str) -> None:
        if self.parameters.get("previous"):
            lines, log = self.state.previous_logs.get(pod), None
        else:
            log = self.state.logs.get(pod)
            lines = None if log is None else log.lines
        if lines is None:
            self._refuse(400, "BadRequest", "there is no such log")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        since = self.parameters.get("sinceTime", "").removesuffix("Z")
        with self.state.changed:
            is_followed = log is not None and bool(self.parameters.get("follow"))
            if log is not None and is_followed:
                log.num_followers += 1
                self.state.changed.notify_all()
            num_told = 0
            while True:
                for line in lines[num_told:]:
                    if line.split(" ")[0] >= since[:19]:
                        self.wfile.write(f"{line}\n".encode())
                self.wfile.flush()
                num_told = len(lines)
                if log is None or log.is_closed or not is_followed:
                    break
                self.state.changed.wait(30)
            if log is not None and is_followed:
                log.num_followers -= 1
                self.state.changed.notify_all()

    def _proxy(self, parts: list[str], query: str) -> None:
        place = parts.index("proxy")
        pod = parts[place - 1].partition(":")[0]
        port = self.state.ports.get(pod)
        if port is None:
            self._refuse(503, "ServiceUnavailable", "error trying to reach service: connection refused")
            return
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        path = "/" + "/".join(parts[place + 1 :]) + (f"?{query}" if query else "")
        # As a real one does: credentials are its own.
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        try:
            connection.request(self.command, path, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
        except OSError as error:
            self._refuse(503, "ServiceUnavailable", f"error trying to reach service: {error}")
            return
        finally:
            connection.close()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in {"connection", "transfer-encoding", "content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, code: int, reason: str, message: str) -> None:
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        self._answer(code, {**body, "reason": reason, "message": message})

    def _answer(self, code: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


_OWN = frozenset({"authorization", "host", "connection", "accept-encoding"})


def _place(parts: list[str]) -> tuple[Kind, str, str, str]:
    """Kind, namespace, name and subresource of a path."""
    group, parts = (parts[1], parts[3:]) if parts[0] == "apis" else ("", parts[2:])
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    kind = next(each for each in _KINDS if (each.group, each.plural) == (group, parts[0]))
    return kind, namespace, parts[1] if len(parts) > 1 else "", parts[2] if len(parts) > 2 else ""


def _selector(text: str | None) -> dict[str, str]:
    return dict(part.split("=", 1) for part in (text or "").split(",") if part)


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(patch, dict):
        return patch
    merged = {key: _merged(old.get(key), value) for key, value in patch.items() if value is not None}
    return {**{key: value for key, value in old.items() if key not in patch}, **merged}
