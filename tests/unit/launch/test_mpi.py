from __future__ import annotations

import socket
from pathlib import Path

import pytest

from clickmill.errors import ConfigError, StateError
from clickmill.launch.address import Address
from clickmill.launch.mpi import Rank, own_host, read_rank
from clickmill.launch.rendezvous import Rendezvous

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "2",
    "PMIX_NAMESPACE": "453836801",
    "PMIX_RANK": "2",
}


@pytest.mark.parametrize(
    ("environ", "rank"),
    [
        (OPEN_MPI, Rank(2, 4, "453836801", 2, is_one_host=True)),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, Rank(2, 4, "453836801", 2)),
        ({"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_PORT": "host:4711"}, Rank(0, 2, "host:4711")),
        ({"PMIX_RANK": "1", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "9"}, Rank(1, 2, "9")),
        (
            {"PMIX_RANK": "1", "PMI_SIZE": "2", "PMIX_NAMESPACE": "x", "CLICKMILL_JOB": "mine"},
            Rank(1, 2, "mine"),
        ),
        ({"HOME": "/root"}, None),
    ],
)
def test_a_rank_is_known_by_what_its_launcher_leaves(environ: dict[str, str], rank: Rank | None) -> None:
    assert read_rank(environ) == rank


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"PMIX_RANK": "1", "CLICKMILL_JOB": "a"}, "`OMPI_COMM_WORLD_SIZE`: is not set"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "`CLICKMILL_JOB`: is not set"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "4"}, "says 4, but there are 4 ranks"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "x"}, "must be a whole number"),
    ],
)
def test_a_launcher_that_leaves_out_what_is_needed_is_told_of(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_rank(environ)


def test_the_address_of_a_rank_is_loopback_only_where_all_ranks_are_here() -> None:
    assert own_host(Rank(0, 2, "a", is_one_host=True), {}) == "127.0.0.1"
    assert own_host(Rank(0, 2, "a"), {"CLICKMILL_HOST": "10.0.0.9"}) == "10.0.0.9"


def test_what_an_earlier_job_left_is_not_taken_for_this_one(tmp_path: Path) -> None:
    old = Rendezvous(tmp_path, "1")
    old.open()
    old.announce(Address("127.0.0.1", 7))
    new = Rendezvous(tmp_path, "2")
    with pytest.raises(StateError, match="rank 0 does not listen"):
        new.wait(0.0, until_open=False)
    new.open()
    new.announce(Address("127.0.0.1", 8))
    assert new.wait(0.0, until_open=False) == Address("127.0.0.1", 8)
    assert new.token_file.stat().st_mode & 0o777 == 0o600
    assert new.token_file.read_text() != old.token_file.read_text()


def test_a_job_whose_name_was_used_before_starts_afresh(tmp_path: Path) -> None:
    meeting = Rendezvous(tmp_path, "host:1/..")
    meeting.open()
    meeting.announce(Address("127.0.0.1", 7))
    meeting.open()
    with pytest.raises(StateError):
        meeting.wait(0.0, until_open=False)
    meeting.close()
    assert list((tmp_path / "rendezvous").iterdir()) == []


def test_an_address_at_which_nobody_listens_is_not_believed(tmp_path: Path) -> None:
    meeting = Rendezvous(tmp_path, "1")
    meeting.open()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname())
        meeting.announce(address)
        assert meeting.wait(0.0) == address
    with pytest.raises(StateError):
        meeting.wait(0.0)
