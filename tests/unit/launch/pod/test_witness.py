"""Failures of pods, written down where they outlive them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clickmill.launch.pod import witness as module
from clickmill.launch.pod.pod import read_pod
from clickmill.launch.pod.witness import Failure, Witness, failure_of, read_failures

from .api import FakeApi, pod
from .conftest import ENVIRON


def failed(
    name: str, code: int = 137, reason: str = "OOMKilled", finished: str = "2026-11-18T01:05:00Z"
) -> dict:
    ended = {"exitCode": code, "reason": reason, "message": "error: lost", "finishedAt": finished}
    item = pod(name, "trainer", phase="Failed", state={"terminated": ended})
    item["metadata"]["uid"] = f"{name}.{finished}"
    return item


@pytest.fixture
def book(api: FakeApi) -> None:
    api.config_maps["ctr-failures"] = {"kind": "ConfigMap", "metadata": {"name": "x", "resourceVersion": "1"}}


@pytest.fixture
def witnesses(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Witness]]:
    """Two, as in a job."""
    monkeypatch.setattr(module, "_BETWEEN_S", 0.01)
    found = [
        Witness(api.client(), read_pod({**ENVIRON, "POD_NAME": "ctr-trainer-0"})),
        Witness(
            api.client(), read_pod({**ENVIRON, "CLICKMILL_ROLE": "PSERVER", "POD_NAME": "ctr-pserver-0"})
        ),
    ]
    yield found
    for each in found:
        each.close()


def wait_for(api: FakeApi, number: int) -> list[Failure]:
    def is_there() -> bool:
        return len(read_failures(api.config_maps["ctr-failures"])) == number

    with api.changed:
        assert api.changed.wait_for(is_there, timeout=30), api.config_maps
    return read_failures(api.config_maps["ctr-failures"])


@pytest.mark.usefixtures("book")
def test_every_failure_is_written_down_once(api: FakeApi, witnesses):
    api.put_pod(failed("ctr-trainer-1"))
    for each in witnesses:
        each.start()
    wait_for(api, 1)
    # It is made again under the same name, and fails again.
    api.put_pod(pod("ctr-trainer-1", "trainer"))
    api.put_pod(failed("ctr-trainer-1", 1, "Error", finished="2026-11-18T01:06:00Z"))
    first, second = wait_for(api, 2)
    assert first == Failure(
        pod="ctr-trainer-1", title="trainer 1", node="n1", exit_code=137, reason="OOMKilled",
        message="error: lost", finished="2026-11-18T01:05:00Z",
    )  # fmt: skip
    assert (second.exit_code, second.reason) == (1, "Error")


@pytest.mark.usefixtures("book")
def test_only_the_last_failures_are_kept(api: FakeApi, witnesses, monkeypatch):
    monkeypatch.setattr(module, "MAX_FAILURES", 2)
    witnesses[0].start()
    for minute in range(4):
        api.put_pod(failed("ctr-trainer-1", finished=f"2026-11-18T01:0{minute}:00Z"))

        def is_written(minute: int = minute) -> bool:
            failures = read_failures(api.config_maps["ctr-failures"])
            return bool(failures) and failures[-1].finished == f"2026-11-18T01:0{minute}:00Z"

        with api.changed:
            assert api.changed.wait_for(is_written, timeout=30)
    assert len(read_failures(api.config_maps["ctr-failures"])) == 2


def test_a_job_without_the_config_map_is_left_in_peace(api: FakeApi, witnesses):
    api.put_pod(failed("ctr-trainer-1"))
    witnesses[0].start()
    api.wait_until_asked("get configmaps")
    assert api.config_maps == {}


def test_only_the_first_of_a_role_watches(api: FakeApi):
    Witness(api.client(), read_pod(ENVIRON)).start()
    assert api.asked == []


@pytest.mark.parametrize(
    "item",
    [
        pod("ctr-trainer-1", "trainer"),
        pod("ctr-trainer-1", "trainer", phase="Succeeded", state={"terminated": {"exitCode": 0}}),
        pod("ctr-trainer-1", "trainer", phase="Failed", state={"terminated": {"exitCode": 143}}),
        pod("other", "trainer", phase="Failed", labels={}),
    ],
)
def test_what_has_not_failed_is_no_failure(item):
    assert failure_of(item) is None


def test_a_pod_that_was_evicted_has_no_code():
    item = pod(
        "ctr-trainer-1", "trainer", phase="Failed", reason="Evicted", message="The node was low on memory"
    )
    found = failure_of(item)
    assert found is not None
    assert (found.exit_code, found.reason, found.message) == (None, "Evicted", "The node was low on memory")


def test_what_is_none_of_ours_is_not_read():
    assert read_failures({"data": {"a": "no JSON", "b": "{}", "c": "[]"}}) == []
    assert read_failures(None) == []
