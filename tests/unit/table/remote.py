"""Servers in this process, and a table on them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.unit.pserver import start_pserver

from clickmill import _core
from clickmill.ps.remote import RemoteTable

if TYPE_CHECKING:
    from pathlib import Path

WIRE = {"role": "trainer", "name": "test", "deadline_ms": 60_000, "retries": 3, "num_threads": 2}


class Servers:
    """As many servers as a test wants; they end with it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[_core.Pserver] = []

    def table(self, config: dict[str, Any], num_servers: int) -> RemoteTable:
        first = self._start(None, 0, num_servers)
        for index in range(1, num_servers):
            self._start(first.address, index, num_servers)
        request = json.dumps({"request": {"kind": "join", "name": "test", "job": job_of(config)}})
        link = _core.ControlLink(json.dumps(WIRE), first.address)
        answer: dict[str, Any] = {}
        while answer.get("kind") != "welcome":
            answer = json.loads(link.ask(request, 60_000))
        place = {
            "epoch": answer["place"]["epoch"],
            "incarnation": answer["incarnation"],
            "servers": answer["place"]["servers"],
            "route": answer["place"]["route"],
            "num_dense": 0,
        }
        return RemoteTable(_core.Session(json.dumps(WIRE), json.dumps(place)), 0)

    def _start(self, coordinator: str | None, index: int, num_servers: int) -> _core.Pserver:
        folder = self._folder / f"snapshots-{len(self._running)}"
        server = start_pserver(folder, index, num_servers, coordinator)
        self._running.append(server)
        return server

    def stop(self) -> None:
        for server in self._running:
            server.stop()


def job_of(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "strategy": "async",
        "lanes": 1,
        "trainers": 1,
        "units": [{"name": "none", "input": {}}],
        "passes": [{"train": [0], "validation": []}],
        "tables": [{"config": config, "restarts": False}],
        "dense": {"rule": {"kind": "sgd"}, "size": 0, "initial": ""},
        "metrics": {"train": {}, "validation": {}},
        "evicts": False,
        "decides": False,
        "publishes": False,
        "snapshot_interval_ms": 3_600_000,
        "full_every": 1,
        "agreement": {},
    }
