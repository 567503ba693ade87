from __future__ import annotations

import base64
import threading

import pytest

from clickmill.errors import ConfigError
from clickmill.launch.pod.deadline import Deadline
from clickmill.launch.pod.pod import read_pod
from clickmill.launch.pod.shared_token import shared_token

from .api import FakeApi
from .conftest import ENVIRON


def read(api: FakeApi) -> str:
    return shared_token(api.client(), read_pod(ENVIRON), Deadline(10), lambda _: None)


def test_the_first_pod_fills_the_secret_and_the_others_read_it(api: FakeApi):
    api.add_secret("ctr-token")
    token = read(api)
    assert len(token) == 64
    assert base64.b64decode(api.secrets["ctr-token"]["data"]["token"]).decode() == token
    assert read(api) == token
    assert api.asked.count("update secrets") == 1


def test_of_many_pods_that_come_at_once_one_is_first(api: FakeApi):
    api.add_secret("ctr-token")
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(read(api))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_what_a_person_has_put_there_is_kept(api: FakeApi):
    api.add_secret("ctr-token", {"token": base64.b64encode(b"of my own\n").decode(), "other": "eA=="})
    assert read(api) == "of my own"


@pytest.mark.parametrize("right", ["get secrets", "update secrets"])
def test_an_account_without_rights_is_told_what_to_type(api: FakeApi, right: str):
    api.add_secret("ctr-token")
    api.forbidden.add(right)
    with pytest.raises(ConfigError, match="ServiceAccount `robot` has no Role that allows") as caught:
        read(api)
    hint = str(caught.value.hint)
    assert "kubectl -n shop create role ctr-token --verb=get,update" in hint
    assert "--resource-name=ctr-token" in hint
    assert "--serviceaccount=shop:robot" in hint


def test_a_secret_that_is_not_there_is_named(api: FakeApi):
    with pytest.raises(ConfigError, match="Secret `ctr-token` cannot be used") as caught:
        read(api)
    assert "kubectl -n shop create secret generic ctr-token" in str(caught.value.hint)
