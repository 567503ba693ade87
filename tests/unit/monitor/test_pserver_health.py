"""What the pages of a parameter server say: the same as `clickmill ps status`."""

from __future__ import annotations

import json
import math
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pserver import start_pserver

from clickmill.monitoring import Monitoring
from clickmill.ps.health import tell_health


@pytest.fixture
def health(tmp_path: Path) -> dict[str, Any]:
    server = start_pserver(tmp_path, 0, 1, None)
    try:
        told: dict[str, Any] = json.loads(server.health())
    finally:
        server.stop()
    return told


@pytest.fixture
def monitoring() -> Iterator[Monitoring]:
    opened = Monitoring("127.0.0.1:0", token=None, is_insecure=False)
    yield opened
    opened.close()


def number(monitoring: Monitoring, name: str) -> float:
    with urllib.request.urlopen(f"http://{monitoring.address}/metrics", timeout=10) as answer:
        (found,) = re.findall(rf"^{name}(?:{{}})? (\S+)$", answer.read().decode(), re.MULTILINE)
    return float(found)


def test_a_server_without_growth_is_never_full(health, monitoring):
    tell_health(monitoring, health)
    assert number(monitoring, "clickmill_pserver_full_in_seconds") == math.inf
    assert number(monitoring, "clickmill_pserver_buckets") == 0


def test_a_forecast_goes_when_memory_grows_no_more(health, monitoring):
    tell_health(monitoring, {**health, "buckets": 512, "full_in_s": 90})
    assert number(monitoring, "clickmill_pserver_full_in_seconds") == 90
    assert number(monitoring, "clickmill_pserver_buckets") == 512
    tell_health(monitoring, {**health, "full_in_s": None})
    assert number(monitoring, "clickmill_pserver_full_in_seconds") == math.inf


TOKEN = "a token for the monitor"


def ask(address: str, path: str, *, method: str = "GET", token: str = TOKEN) -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://{address}{path}", method=method, headers={"X-Clickmill-Token": token}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_a_coordinator_tells_its_status_and_takes_orders_of_those_who_have_the_token(tmp_path):
    server = start_pserver(tmp_path, 0, 1, None)
    monitoring = Monitoring("127.0.0.1:0", token=TOKEN, is_insecure=False)
    try:
        assert ask(monitoring.address, "/status")[0] == 404
        monitoring.tell_cluster(server)
        code, text = ask(monitoring.address, "/status")
        assert (code, json.loads(text)["num_servers"]) == (200, 1)
        assert ask(monitoring.address, "/status", token="another token than that")[0] == 401
        code, words = ask(monitoring.address, "/scale?pservers=2", method="POST")
        assert (code, words[:26]) == (409, "the cluster is not running")
        assert ask(monitoring.address, "/stop", method="POST")[0] == 200
        while server.wait(10.0) is None:
            pass
    finally:
        monitoring.close()
        server.stop()
