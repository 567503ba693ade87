from __future__ import annotations

import threading

import pytest

from clickmill.launch.pod import farewell
from clickmill.launch.pod.farewell import is_wanted_elsewhere, linger
from clickmill.launch.pod.pod import read_pod

from .api import FakeApi, pod
from .conftest import ENVIRON

SERVER = {**ENVIRON, "CLICKMILL_ROLE": "PSERVER", "POD_NAME": "ctr-pserver-0"}


def test_a_server_goes_when_no_trainer_runs_any_more(api: FakeApi, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(farewell, "_BETWEEN_S", 0.01)
    api.put_pod(pod("ctr-trainer-0", "trainer"))
    api.put_pod(pod("ctr-trainer-1", "trainer", phase="Pending"))
    api.put_pod(pod("ctr-pserver-1"))
    thread = threading.Thread(target=linger, args=(api.client(), read_pod(SERVER)))
    thread.start()
    api.wait_until_asked("list pods")
    assert thread.is_alive()
    api.put_pod(pod("ctr-trainer-0", "trainer", phase="Succeeded"))
    thread.join(30)
    assert not thread.is_alive()


def test_a_server_does_not_stay_for_ever(api: FakeApi):
    api.put_pod(pod("ctr-trainer-0", "trainer"))
    linger(api.client(), read_pod(SERVER), seconds=0.1)


def test_a_server_that_may_not_ask_goes(api: FakeApi):
    api.forbidden.add("list pods")
    linger(api.client(), read_pod(SERVER))


def test_only_a_pod_that_nobody_deletes_is_wanted_elsewhere(api: FakeApi):
    told, own = read_pod(ENVIRON), pod("ctr-trainer-1", "trainer")
    assert not is_wanted_elsewhere(api.client(), told), "it is gone already"
    api.put_pod(own)
    assert is_wanted_elsewhere(api.client(), told)
    own["metadata"]["deletionTimestamp"] = "2026-11-18T01:00:00Z"
    assert not is_wanted_elsewhere(api.client(), told)
    client = api.client()
    client.address = client.address._replace(port=1)
    assert not is_wanted_elsewhere(client, told), "nobody can say"
