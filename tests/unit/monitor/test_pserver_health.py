"""What `/metrics` of a parameter server says of the same numbers as `clickmill ps status`."""

from __future__ import annotations

import json
import math
import re
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
