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
