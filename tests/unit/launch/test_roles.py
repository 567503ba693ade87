from __future__ import annotations

import pytest

from clickmill.errors import ConfigError
from clickmill.launch.address import Address
from clickmill.launch.roles import Role, read_role

# What the launcher of a Kubernetes job exports in its pods: every name is there in both kinds of pods.
KUBERNETES = {
    "PADDLE_JOB_NAME": "fluid-ctr",
    "PADDLE_IS_LOCAL": "0",
    "PADDLE_TRAINERS_NUM": "2",
    "PADDLE_PSERVERS_NUM": "2",
    "PADDLE_PORT": "30236",
    "PADDLE_PSERVERS": "192.168.48.24:30236,192.168.48.25:30237",
    "PADDLE_TRAINER_IPS": "",
    "NAMESPACE": "default",
    "CPU_NUM": "2",
    "FLAGS_rpc_deadline": "36000000",
    "GLOG_v": "0",
    "ENTRY": "python train.py",
}
FLEET = {
    "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6001,127.0.0.1:6002",
    "PADDLE_TRAINERS_NUM": "2",
}
OURS = {
    "CLICKMILL_TRAINERS": "3",
    "CLICKMILL_PSERVERS": "2",
    "CLICKMILL_PSERVER_ADDRESSES": "a:7000,b:7000",
}
COLLECTIVE = {
    "TRAINING_ROLE": "TRAINER",
    "PADDLE_TRAINERS_NUM": "2",
    "PADDLE_TRAINER_ID": "1",
    "PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:6170,10.0.0.2:6170",
    "PADDLE_CURRENT_ENDPOINT": "10.0.0.2:6170",
}


def role(environ: dict[str, str], *, is_collective: bool = False) -> Role:
    found = read_role(environ, is_collective=is_collective)
    assert found is not None
    return found


def test_an_environment_without_a_role_gives_none() -> None:
    assert read_role({"HOME": "/root", "PADDLE_TRAINERS_NUM": "2", "TRAINING_ROLE": " "}) is None


@pytest.mark.parametrize(
    ("more", "kind", "index", "address"),
    [
        # The pod's number is by name, the list is by address: the address decides.
        (
            {"PADDLE_TRAINING_ROLE": "PSERVER", "POD_IP": "192.168.48.25", "PADDLE_PSERVER_ID": "0"},
            "pserver", 1, Address("192.168.48.25", 30237),
        ),
        (
            {"TRAINING_ROLE": "PSERVER", "PADDLE_CURRENT_IP": "192.168.48.24", "POD_IP": "192.168.48.24"},
            "pserver", 0, Address("192.168.48.24", 30236),
        ),
        ({"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1", "POD_IP": "10.1.1.1"}, "trainer", 1, None),
        ({"PADDLE_TRAINING_ROLE": "WORKER", "TRAINING_ROLE": "TRAINER"}, "trainer", None, None),
        (
            {"CLICKMILL_ROLE": "pserver", "CLICKMILL_INDEX": "1"},
            "pserver", 1, Address("192.168.48.25", 30237),
        ),
    ],
)  # fmt: skip
def test_a_pod_of_a_kubernetes_job_knows_its_place(
    more: dict[str, str], kind: str, index: int | None, address: Address | None
) -> None:
    found = role({**KUBERNETES, **more})
    assert (found.kind, found.index, found.address) == (kind, index, address)
    assert found.coordinator == Address("192.168.48.24", 30236)
    assert (found.num_trainers, found.num_pservers, found.num_threads, found.job) == (2, 2, 2, "fluid-ctr")
    assert dict(found.communicator) == {"rpc_deadline": "36000000"}


@pytest.mark.parametrize("place", [0, 1])
def test_servers_on_one_host_are_told_apart_by_their_port(place: int) -> None:
    found = role(
        {**FLEET, "TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.1", "PADDLE_PORT": f"{6001 + place}"}
    )
    assert (found.index, found.address) == (place, Address("127.0.0.1", 6001 + place))


def test_pods_that_share_a_host_are_told_apart_by_their_number() -> None:
    more = {
        "TRAINING_ROLE": "PSERVER",
        "POD_IP": "127.0.0.1",
        "PADDLE_PORT": "6001",
        "PADDLE_PSERVER_ID": "1",
    }
    assert role({**FLEET, **more}).address == Address("127.0.0.1", 6002)


def test_an_address_that_starts_like_another_is_not_taken_for_it() -> None:
    environ = {"TRAINING_ROLE": "PSERVER", "PADDLE_PSERVERS": "10.0.0.12:7164,10.0.0.1:7164"}
    assert role({**environ, "POD_IP": "10.0.0.1"}).index == 1
    with pytest.raises(ConfigError, match=r"`POD_IP`: says `10.0.0`, which is not among"):
        read_role({**environ, "POD_IP": "10.0.0"})


def test_bare_hosts_take_the_port_of_the_job() -> None:
    environ = {"TRAINING_ROLE": "TRAINER", "PADDLE_PSERVERS": "10.0.0.2,10.0.0.1"}
    assert role({**environ, "PADDLE_PORT": "30240"}).coordinator == Address("10.0.0.2", 30240)
    assert role(environ).coordinator == Address("10.0.0.2", 6174)


def test_our_names_are_enough() -> None:
    trainer = role({**OURS, "CLICKMILL_ROLE": "trainer", "CLICKMILL_INDEX": "2", "CLICKMILL_TOKEN": "secret"})
    assert (trainer.index, trainer.coordinator, trainer.token) == (2, Address("a", 7000), "secret")
    assert "secret" not in repr(trainer)
    server = role({**OURS, "CLICKMILL_ROLE": "pserver", "CLICKMILL_HOST": "b"})
    assert (server.index, server.address) == (1, Address("b", 7000))
    late = role({"CLICKMILL_ROLE": "trainer", "CLICKMILL_COORDINATOR": "a:7000"})
    assert (late.index, late.num_trainers, late.name) == (None, None, "trainer")
    first = role({"CLICKMILL_ROLE": "pserver", "CLICKMILL_HOST": "10.0.0.9", "CLICKMILL_PORT": "7164"})
    assert (first.index, first.address, first.coordinator) == (0, Address("10.0.0.9", 7164), None)


def test_knobs_of_the_communicator_are_known_by_their_old_names() -> None:
    found = role(
        {
            "CLICKMILL_ROLE": "trainer",
            "CLICKMILL_COORDINATOR": "a:1",
            "FLAGS_communicator_send_queue_size": "5",
            "FLAGS_communicator_min_send_grad_num_before_recv": "7",
            "FLAGS_communicator_independent_recv_thread": "1",
            "FLAGS_rpc_retry_times": "0",
        }
    )
    assert dict(found.communicator) == {
        "send_queue_size": "5",
        "max_send_grad_num_before_recv": "7",
        "rpc_retry_times": "0",
    }
    assert found.ignored == ("FLAGS_communicator_independent_recv_thread",)


@pytest.mark.parametrize(
    ("more", "rank", "workers"),
    [
        ({}, 1, ("10.0.0.1:6170", "10.0.0.2:6170")),
        ({"PADDLE_TRAINER_ID": ""}, 1, ("10.0.0.1:6170", "10.0.0.2:6170")),
        (
            {"PADDLE_TRAINER_ENDPOINTS": "", "PADDLE_CURRENT_ENDPOINT": "", "PADDLE_TRAINERS": "a,b"},
            1,
            ("a:6170", "b:6170"),
        ),
        (
            {
                "PADDLE_TRAINER_ENDPOINTS": "",
                "PADDLE_CURRENT_ENDPOINT": "",
                "PADDLE_TRAINER_IPS": "a,b",
                "PADDLE_PORT": "9",
                "PADDLE_TRAINER_ID": "0",
            },
            0,
            ("a:9", "b:9"),
        ),
    ],
)
def test_a_worker_of_a_collective_job_knows_its_rank(
    more: dict[str, str], rank: int, workers: tuple[str, ...]
) -> None:
    found = role({**COLLECTIVE, **more}, is_collective=True)
    assert (found.index, tuple(map(str, found.workers)), found.num_trainers) == (rank, workers, 2)
    assert found.address == found.workers[rank]


TRAINER = {"CLICKMILL_ROLE": "trainer", "CLICKMILL_COORDINATOR": "a:1"}
SERVER = {**OURS, "CLICKMILL_ROLE": "pserver"}


@pytest.mark.parametrize(
    ("environ", "name", "words"),
    [
        ({"CLICKMILL_ROLE": "boss"}, "CLICKMILL_ROLE", "must be PSERVER, TRAINER or WORKER, not `boss`"),
        (
            {**TRAINER, "TRAINING_ROLE": "PSERVER"},
            "TRAINING_ROLE",
            "says `PSERVER`, but `CLICKMILL_ROLE` says `trainer`; unset one of them",
        ),
        ({**TRAINER, "PADDLE_IS_LOCAL": "1"}, "PADDLE_IS_LOCAL", "asks for local training"),
        ({"TRAINING_ROLE": "TRAINER"}, "CLICKMILL_COORDINATOR", "PADDLE_PSERVERS_IP_PORT_LIST"),
        ({**TRAINER, "CLICKMILL_COORDINATOR": "a"}, "CLICKMILL_COORDINATOR", "has no port"),
        ({**TRAINER, "CLICKMILL_COORDINATOR": "a:1,b:1"}, "CLICKMILL_COORDINATOR", "must be one address"),
        (
            {**TRAINER, "PADDLE_TRAINER_ID": "2", "PADDLE_TRAINERS_NUM": "2"},
            "PADDLE_TRAINER_ID",
            "says 2, but there are 2 trainers by `PADDLE_TRAINERS_NUM`; numbers start at 0",
        ),
        ({**TRAINER, "PADDLE_TRAINER_ID": "-1"}, "PADDLE_TRAINER_ID", "must be a whole number, not `-1`"),
        ({**TRAINER, "PADDLE_TRAINERS_NUM": "0"}, "PADDLE_TRAINERS_NUM", "must be 1 or more"),
        ({**TRAINER, "CPU_NUM": "0"}, "CPU_NUM", "must be 1 or more"),
        ({**TRAINER, "CLICKMILL_INSECURE": "maybe"}, "CLICKMILL_INSECURE", "must be 1 or 0"),
        (
            {**TRAINER, "CLICKMILL_PSERVER_ADDRESSES": "b:1,a:1"},
            "CLICKMILL_COORDINATOR",
            "the first address of `CLICKMILL_PSERVER_ADDRESSES` is `b:1`",
        ),
        (
            {**SERVER, "CLICKMILL_HOST": "a", "PADDLE_PSERVERS_NUM": "2", "CLICKMILL_PSERVERS": "3"},
            "PADDLE_PSERVERS_NUM",
            "says `2`, but `CLICKMILL_PSERVERS` says `3`",
        ),
        (
            {**SERVER, "CLICKMILL_HOST": "a", "CLICKMILL_PSERVERS": "3"},
            "CLICKMILL_PSERVERS",
            "says 3, but `CLICKMILL_PSERVER_ADDRESSES` names 2 addresses",
        ),
        ({**SERVER, "CLICKMILL_PSERVER_ADDRESSES": "a:1,a:1", "CLICKMILL_HOST": "a"},
         "CLICKMILL_PSERVER_ADDRESSES", "names `a:1` twice"),
        ({**SERVER}, "CLICKMILL_HOST", "or `CLICKMILL_INDEX`, its place there"),
        ({**SERVER, "CLICKMILL_HOST": "c"}, "CLICKMILL_HOST", "not among the addresses of"),
        (
            {**SERVER, "CLICKMILL_HOST": "a", "CLICKMILL_INDEX": "1"},
            "CLICKMILL_INDEX",
            "says 1, but `a` is number 0 in `CLICKMILL_PSERVER_ADDRESSES`",
        ),
        ({**SERVER, "POD_IP": "a", "PADDLE_CURRENT_IP": "b"}, "POD_IP", "but `PADDLE_CURRENT_IP` says `b`"),
        (
            {**FLEET, "TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.1"},
            "CLICKMILL_INDEX",
            "has 2 addresses of `127.0.0.1`",
        ),
        ({"CLICKMILL_ROLE": "pserver", "CLICKMILL_PSERVERS": "2"}, "CLICKMILL_INDEX", "is not set"),
        ({"CLICKMILL_ROLE": "pserver", "CLICKMILL_INDEX": "1"}, "CLICKMILL_COORDINATOR", "is not set"),
        ({"CLICKMILL_ROLE": "pserver", "CLICKMILL_INDEX": "0"}, "CLICKMILL_HOST", "is not set"),
        (
            {
                **TRAINER,
                "FLAGS_communicator_max_send_grad_num_before_recv": "1",
                "FLAGS_communicator_min_send_grad_num_before_recv": "2",
            },
            "FLAGS_communicator_min_send_grad_num_before_recv",
            "but `FLAGS_communicator_max_send_grad_num_before_recv` says `1`",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_by_variable(environ: dict[str, str], name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_role(environ)
    told = {problem.key: problem.message for problem in caught.value.problems}
    assert words in told[name]
    assert name in str(caught.value)
    assert "clusters.md" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("more", "name", "words"),
    [
        ({"TRAINING_ROLE": "PSERVER"}, "TRAINING_ROLE", "a collective job has workers only"),
        ({"PADDLE_CURRENT_ENDPOINT": "10.0.0.2:617"}, "PADDLE_CURRENT_ENDPOINT", "not among the addresses"),
        ({"PADDLE_TRAINER_ID": "0"}, "PADDLE_TRAINER_ID", "is number 1 in `PADDLE_TRAINER_ENDPOINTS`"),
        ({"PADDLE_TRAINERS_NUM": "3"}, "PADDLE_TRAINERS_NUM", "names 2 addresses"),
        ({"PADDLE_TRAINER_ENDPOINTS": ""}, "CLICKMILL_WORKER_ADDRESSES", "is not set"),
        ({"PADDLE_TRAINER_ID": "", "PADDLE_CURRENT_ENDPOINT": ""}, "CLICKMILL_INDEX", "is not set"),
    ],
)
def test_what_cannot_be_in_a_collective_job_is_told(more: dict[str, str], name: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_role({**COLLECTIVE, **more}, is_collective=True)
    assert words in {problem.key: problem.message for problem in caught.value.problems}[name]


def test_a_server_that_is_told_nothing_asks_for_its_number_and_its_address() -> None:
    with pytest.raises(ConfigError) as caught:
        read_role({"TRAINING_ROLE": "PSERVER"})
    assert [problem.key for problem in caught.value.problems] == ["CLICKMILL_INDEX", "CLICKMILL_HOST"]


def test_the_only_server_needs_its_address_alone_and_takes_the_usual_port() -> None:
    found = role({"TRAINING_ROLE": "PSERVER", "PADDLE_PSERVERS_NUM": "1", "POD_IP": "10.0.0.1"})
    assert (found.index, found.address) == (0, Address("10.0.0.1", 6174))


def test_everything_wrong_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read_role({"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINERS_NUM": "x", "PADDLE_TRAINER_ID": "y"})
    assert len(caught.value.problems) == 3
