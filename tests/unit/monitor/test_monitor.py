"""The pages that a Python process answers, over real HTTP requests."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from clickmill._core import Monitor
from clickmill.errors import ConfigError

TOKEN = "a token for the monitor"


def fetch(monitor: Monitor, path: str, token: str | None = None) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://{monitor.address}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor("127.0.0.1:0") as started:
        yield started


def test_what_was_counted_is_read(monitor: Monitor) -> None:
    labels = {"strategy": "sync", "lane": "3"}
    samples = monitor.counter("clickmill_trainer_samples_total", "Samples trained", labels)
    samples.add(500)
    samples.add()
    monitor.counter("clickmill_trainer_samples_total", "Samples trained", labels).add(0.5)
    monitor.gauge("clickmill_trainer_loss_ratio", "Loss of the last batch").set(0.25)
    wait = monitor.histogram("clickmill_trainer_wait_seconds", "Waits for servers", [0.01, 0.1])
    for seconds in (0.001, 0.05, 7.0):
        wait.observe(seconds)
    status, text = fetch(monitor, "/metrics")
    assert status == 200
    lines = text.splitlines()
    assert 'clickmill_trainer_samples_total{lane="3",strategy="sync"} 501.5' in lines
    assert "clickmill_trainer_loss_ratio{} 0.25" in lines
    assert 'clickmill_trainer_wait_seconds_bucket{le="0.1"} 2' in lines
    assert "clickmill_trainer_wait_seconds_count{} 3" in lines
    assert lines[-1] == "# EOF"


def test_a_process_is_ready_when_it_says_so(monitor: Monitor) -> None:
    assert fetch(monitor, "/healthz") == (200, "ok\n")
    assert fetch(monitor, "/readyz") == (503, "starting\n")
    monitor.set_ready(False, "waiting for pserver 1")
    assert fetch(monitor, "/readyz") == (503, "waiting for pserver 1\n")
    monitor.set_ready(True)
    assert fetch(monitor, "/readyz") == (200, "ready\n")


def test_metrics_are_for_those_who_have_the_token() -> None:
    with Monitor("0.0.0.0:0", token=TOKEN) as monitor:
        port = monitor.address.rpartition(":")[2]
        assert port != "0"
        assert fetch(monitor, "/metrics")[0] == 401
        assert fetch(monitor, "/metrics", "another token than that")[0] == 401
        assert fetch(monitor, "/metrics", TOKEN)[0] == 200


def test_beyond_this_machine_a_token_is_needed_or_the_word_that_none_is_meant() -> None:
    with pytest.raises(ConfigError, match="--insecure"):
        Monitor("0.0.0.0:0")
    Monitor("0.0.0.0:0", is_insecure=True).close()


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ConfigError, match="16 or more"):
        Monitor("127.0.0.1:0", token="secret")


def test_an_address_that_is_taken_is_an_os_error_that_names_it(monitor: Monitor) -> None:
    with pytest.raises(OSError, match=monitor.address):
        Monitor(monitor.address)


def test_a_closed_monitor_answers_no_more_and_its_counters_still_count(monitor: Monitor) -> None:
    counter = monitor.counter("clickmill_test_things_total", "Things")
    monitor.close()
    monitor.close()
    counter.add()
    with pytest.raises(urllib.error.URLError):
        fetch(monitor, "/healthz")


@pytest.mark.parametrize("name", ["things_total", "clickmill_things", "clickmill_Things_total"])
def test_a_counter_of_another_name_than_the_house_gives_is_refused(monitor: Monitor, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        monitor.counter(name, "Things")
