from __future__ import annotations

import pytest

from clickmill.errors import ConfigError
from clickmill.launch.address import Address
from clickmill.launch.pod.pod import read_pod

from .conftest import ENVIRON


def test_the_number_of_a_pod_is_at_the_end_of_its_name():
    pod = read_pod(ENVIRON)
    assert (pod.title, pod.job, pod.ip, pod.port) == ("trainer 1", "ctr", "10.0.0.9", 30240)


def test_pods_of_an_indexed_job_are_told_their_number():
    pod = read_pod({**ENVIRON, "POD_NAME": "ctr-trainer-3-x7k2p", "JOB_COMPLETION_INDEX": "3"})
    assert pod.index == 3


def test_others_are_found_by_names_that_outlive_their_addresses():
    pod = read_pod({**ENVIRON, "CLICKMILL_PORT": "7000"})
    assert pod.meeting == Address("ctr-pserver-0.ctr-pods.shop.svc", 7000)
    assert pod.address_of("pserver", 1).host == "ctr-pserver-1.ctr-pods.shop.svc"


def test_ranks_meet_at_rank_0_and_need_no_servers():
    environ = {**ENVIRON, "CLICKMILL_ROLE": "worker", "POD_NAME": "ctr-worker-1"}
    del environ["CLICKMILL_PSERVERS"]
    pod = read_pod(environ)
    assert pod.meeting.host == "ctr-worker-0.ctr-pods.shop.svc"
    assert (pod.peers, pod.num_peers) == ("worker", 2)


def test_a_rank_beyond_the_world_is_refused():
    environ = {**ENVIRON, "CLICKMILL_ROLE": "WORKER", "POD_NAME": "ctr-worker-2"}
    with pytest.raises(ConfigError, match="is number 2, but `CLICKMILL_TRAINERS` says 2"):
        read_pod(environ)


def test_all_that_is_missing_is_told_at_once():
    with pytest.raises(ConfigError) as caught:
        read_pod({"CLICKMILL_ROLE": "SERVER"})
    words = str(caught.value)
    for name in ("CLICKMILL_ROLE", "CLICKMILL_JOB", "POD_NAME", "CLICKMILL_HOST", "NAMESPACE"):
        assert f"`{name}`" in words


def test_names_of_the_seeds_are_read_and_must_agree():
    environ = {**ENVIRON, "PADDLE_TRAINERS_NUM": "3"}
    with pytest.raises(
        ConfigError, match="`PADDLE_TRAINERS_NUM`: says `3`, but `CLICKMILL_TRAINERS` says `2`"
    ):
        read_pod(environ)
