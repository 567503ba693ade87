from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from clickmill.errors import ConfigError, DataError, MemberLostError, StateError
from clickmill.launch.pod import waiting as module
from clickmill.launch.pod.deadline import Deadline
from clickmill.launch.pod.pod import read_pod
from clickmill.launch.pod.waiting import RunOver, Waiting

from .api import FakeApi, pod
from .conftest import ENVIRON


def new(api: FakeApi, *, seconds: float = 30, said: list[str] | None = None, **environ: str) -> Waiting:
    say: Callable[[str], None] = (said if said is not None else []).append
    return Waiting(api.client(), read_pod({**ENVIRON, **environ}), Deadline(seconds), say)


def test_nothing_is_said_when_all_run(api: FakeApi):
    for index in (0, 1):
        api.put_pod(pod(f"ctr-pserver-{index}"))
    said: list[str] = []
    peers = new(api, said=said).until_all_run()
    assert [peer.title for peer in peers] == ["pserver 0", "pserver 1"]
    assert said == []


def test_who_is_missing_is_told_and_noticed_as_soon_as_it_runs(api: FakeApi):
    api.put_pod(pod("ctr-pserver-0"))
    api.put_pod(pod("ctr-pserver-1", phase="Pending", state={"waiting": {"reason": "ContainerCreating"}}))
    said: list[str] = []
    waiting = new(api, said=said)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(waiting.until_all_run()))
    thread.start()
    api.wait_until_asked("watch pods")
    api.put_pod(pod("ctr-pserver-1"))
    thread.join(30)
    assert [peer.state for peer in found] == ["runs", "runs"]
    assert len(said) == 1
    assert said[0].startswith("waits for pserver 1, which starts on node `n1` (1 of 2 run; gives up in ")


def test_a_pod_does_not_wait_for_itself(api: FakeApi):
    api.put_pod(pod("ctr-pserver-0", phase="Pending"))
    api.put_pod(pod("ctr-pserver-1"))
    environ = {"CLICKMILL_ROLE": "PSERVER", "POD_NAME": "ctr-pserver-0"}
    assert len(new(api, **environ).until_all_run()) == 2


@pytest.mark.parametrize(("name", "role"), [("ctr-pserver-0", "pserver"), ("ctr-trainer-0", "trainer")])
def test_the_run_is_over_when_coordinator_or_trainers_have_ended_well(api: FakeApi, name: str, role: str):
    api.put_pod(pod(name, role, phase="Succeeded"))
    with pytest.raises(RunOver, match="the run is over"):
        new(api).until_all_run()


def ended(code: int, finished: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "finishedAt": finished, "message": "it was so"}}


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 2)])
def test_pods_of_an_earlier_job_of_the_same_name_say_nothing(api: FakeApi, phase: str, code: int):
    """They are there for a moment when a job is deleted and made again."""
    api.put_pod(pod("ctr-trainer-1", "trainer", owner="job-2"))
    api.put_pod(pod("ctr-trainer-0", "trainer", phase=phase, state=ended(code, "2026-11-18T00:59:00Z")))
    for index in (0, 1):
        api.put_pod(pod(f"ctr-pserver-{index}", owner="job-2"))
    assert len(new(api).until_all_run()) == 2


def test_servers_of_a_job_for_each_role_are_heard_when_they_end_later(api: FakeApi):
    api.put_pod(pod("ctr-trainer-1", "trainer", owner="trainers"))
    state = ended(0, "2026-11-18T01:00:01Z")
    api.put_pod(pod("ctr-pserver-0", phase="Succeeded", state=state, owner="servers"))
    with pytest.raises(RunOver):
        new(api).until_all_run()


def test_a_server_that_has_left_is_not_waited_for_and_does_not_end_the_run(api: FakeApi):
    api.put_pod(pod("ctr-pserver-0"))
    api.put_pod(pod("ctr-pserver-1", phase="Succeeded"))
    assert len(new(api).until_all_run()) == 2


def test_a_server_without_a_pod_is_not_waited_for_for_long(api: FakeApi, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_ABSENT_S", -1.0)
    api.put_pod(pod("ctr-pserver-0"))
    assert len(new(api).until_all_run()) == 2


@pytest.mark.parametrize(("code", "kind"), [(2, ConfigError), (3, DataError)])
def test_a_peer_that_has_failed_for_good_ends_the_wait_with_its_code(
    api: FakeApi, code: int, kind: type[Exception]
):
    state = {"terminated": {"exitCode": code, "message": "error: all is lost"}}
    api.put_pod(pod("ctr-pserver-0"))
    api.put_pod(pod("ctr-pserver-1", phase="Failed", state=state))
    with pytest.raises(kind, match=r"pserver 1 cannot come: it has failed: .*all is lost"):
        new(api).until_all_run()


def test_an_image_name_that_means_nothing_is_not_waited_for(api: FakeApi):
    api.put_pod(pod("ctr-pserver-0"))
    state = {"waiting": {"reason": "InvalidImageName", "message": "couldn't parse image"}}
    api.put_pod(pod("ctr-pserver-1", phase="Pending", state=state))
    with pytest.raises(MemberLostError, match=r"pserver 1 cannot come: .*couldn't parse image"):
        new(api).until_all_run()


def test_a_wait_has_an_end_that_names_who_did_not_come(api: FakeApi):
    api.put_pod(pod("ctr-pserver-0"))
    api.put_pod(pod("ctr-pserver-1", phase="Pending"))
    with pytest.raises(
        MemberLostError, match=r"waited 0\.1 seconds for other pods of the job: pserver 1 starts on"
    ):
        new(api, seconds=0.1).until_all_run()


def test_an_account_that_may_not_look_at_pods_is_told_what_to_type(api: FakeApi):
    api.forbidden.add("list pods")
    with pytest.raises(ConfigError, match="`get`, `list` and `watch` on pods") as caught:
        new(api).until_all_run()
    hint = str(caught.value.hint)
    assert "kubectl -n shop create role ctr-pods --verb=get,list,watch --resource=pods" in hint
    assert "--serviceaccount=shop:robot" in hint


def test_an_api_server_that_is_away_is_waited_for(api: FakeApi):
    client = api.client()
    client.address = client.address._replace(port=1)
    waiting = Waiting(client, read_pod(ENVIRON), Deadline(0.2), lambda _: None)
    with pytest.raises(StateError, match=r"the API server did not answer within 0\.2 seconds"):
        waiting.until_all_run()


def test_a_name_that_stands_for_an_earlier_pod_is_waited_for(api: FakeApi, monkeypatch: pytest.MonkeyPatch):
    for index in (0, 1):
        api.put_pod(pod(f"ctr-pserver-{index}", ip="10.0.0.8"))
    answers: list[Any] = [OSError(-2, "Name or service not known"), {"10.0.0.7"}, {"10.0.0.8"}]

    def addresses_of(host: str) -> set[str]:
        assert host == "ctr-pserver-0.ctr-pods.shop.svc"
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(module, "addresses_of", addresses_of)
    monkeypatch.setattr(module, "_BETWEEN_S", 0.0)
    said: list[str] = []
    waiting = new(api, said=said)
    waiting.until_named(waiting.until_all_run()[0])
    assert answers == []
    assert "Name or service not known" in said[0]
    assert "it stands for 10.0.0.7, not for 10.0.0.8" in said[1]
