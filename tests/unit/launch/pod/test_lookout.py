from __future__ import annotations

import threading

import pytest

from clickmill.errors import DataError
from clickmill.launch.pod.lookout import Lookout
from clickmill.launch.pod.pod import read_pod

from .api import FakeApi, pod
from .conftest import ENVIRON


def failed(name: str, code: int, **more: str) -> dict:
    finished = "2026-11-18T00:59:00Z"  # before the others were made
    state = {"terminated": {"exitCode": code, "message": "error: no such file", "finishedAt": finished}}
    return pod(name, "trainer", phase="Failed", state=state, **more)


@pytest.fixture
def seen(api: FakeApi):
    """What a trainer sees, and the event that it sets when that ends it."""
    is_lost = threading.Event()
    api.put_pod(pod("ctr-trainer-1", "trainer"))
    lookout = Lookout(api.client(), read_pod(ENVIRON), is_lost.set, look_s=0.01)
    lookout.start()
    yield lookout, is_lost
    lookout.close()


def test_a_pod_that_has_failed_for_good_ends_the_others(api: FakeApi, seen):
    lookout, is_lost = seen
    api.put_pod(failed("ctr-trainer-0", 3))
    assert is_lost.wait(30)
    assert isinstance(lookout.error, DataError)
    assert "trainer 0 cannot come: it has failed" in str(lookout.error)
    assert "no such file" in str(lookout.error)


def test_who_may_come_again_who_looks_and_who_is_of_another_job_end_nobody(api: FakeApi, seen):
    _, is_lost = seen
    api.put_pod(failed("ctr-trainer-0", 137))
    api.put_pod(failed("ctr-trainer-1", 2))
    api.put_pod(failed("ctr-trainer-2", 2, owner="job-0"))
    for _ in range(3):
        api.asked.clear()
        api.wait_until_asked("get pods")
    assert not is_lost.is_set()


def test_an_api_server_that_says_no_is_no_reason_to_end(api: FakeApi, seen):
    _, is_lost = seen
    api.forbidden.add("list pods")
    api.wait_until_asked("list pods")
    api.forbidden.clear()
    api.put_pod(failed("ctr-trainer-0", 4))
    assert is_lost.wait(30)


# A server that the run has left behind


@pytest.fixture
def server_seen(api: FakeApi):
    """What a server sees, and the event that it sets when that ends it."""
    is_over = threading.Event()
    api.put_pod(pod("ctr-pserver-0"))
    environ = {**ENVIRON, "CLICKMILL_ROLE": "PSERVER", "POD_NAME": "ctr-pserver-0"}
    lookout = Lookout(api.client(), read_pod(environ), is_over.set, look_s=0.01)
    lookout.start()
    yield lookout, is_over
    lookout.close()


def done(name: str, role: str = "trainer", **more: str) -> dict:
    state = {"terminated": {"exitCode": 0, "finishedAt": "2026-11-18T01:10:00Z"}}
    return pod(name, role, phase="Succeeded", state=state, **more)


def test_a_server_ends_when_all_trainers_have_and_one_of_them_well(api: FakeApi, server_seen):
    lookout, is_over = server_seen
    api.put_pod(done("ctr-trainer-0"))
    api.put_pod(pod("ctr-trainer-1", "trainer", phase="Pending"))  # never found room
    assert is_over.wait(30)
    assert lookout.is_over
    assert lookout.error is None


def test_a_server_stays_while_a_trainer_runs_or_has_not_ended_well(api: FakeApi, server_seen):
    _, is_over = server_seen
    api.put_pod(pod("ctr-trainer-1", "trainer"))
    api.put_pod(done("ctr-trainer-0"))
    look_some_times(api)
    assert not is_over.is_set()
    state = {"terminated": {"exitCode": 143, "finishedAt": "2026-11-18T01:10:00Z"}}
    api.put_pod(pod("ctr-trainer-0", "trainer", phase="Failed", state=state))  # scaled away
    api.put_pod(pod("ctr-trainer-1", "trainer", phase="Failed", state=state))
    look_some_times(api)
    assert not is_over.is_set()


def test_a_server_stays_though_trainers_of_an_earlier_job_are_done(api: FakeApi, server_seen):
    _, is_over = server_seen
    earlier = done("ctr-trainer-0", owner="job-0")
    earlier["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2026-11-18T00:59:00Z"
    api.put_pod(earlier)
    look_some_times(api)
    assert not is_over.is_set()


@pytest.mark.parametrize(("name", "role"), [("ctr-trainer-0", "trainer"), ("ctr-pserver-0", "pserver")])
def test_a_trainer_is_told_once_when_others_are_done_and_not_ended(api: FakeApi, name: str, role: str):
    is_lost, told = threading.Event(), threading.Semaphore(0)
    api.put_pod(pod("ctr-trainer-1", "trainer"))
    lookout = Lookout(api.client(), read_pod(ENVIRON), is_lost.set, told.release, look_s=0.01)
    lookout.start()
    api.put_pod(done("ctr-trainer-1"))
    api.put_pod(done("ctr-pserver-1", role="pserver"))  # its buckets have moved
    look_some_times(api)
    assert not told.acquire(blocking=False)
    api.put_pod(done(name, role=role))
    assert told.acquire(timeout=30)
    look_some_times(api)
    lookout.close()
    assert not told.acquire(blocking=False)
    assert not is_lost.is_set()


def look_some_times(api: FakeApi) -> None:
    for _ in range(4):
        api.asked.clear()
        api.wait_until_asked("list pods")
