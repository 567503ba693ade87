"""Whoever cannot join a cluster is told why, what to do, and ends with the code of its mistake."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from clickmill.cli.exits import FAILURE, USAGE
from tests.cluster.process import Command, run
from tests.cluster.proxy import free_port
from tests.cluster.running import Running, cluster

COMMANDS = {
    "trainer": ("trainer", "-m", "config.yaml", "--set", "runner.0.cluster.wait_for_members_s=0.1"),
    "pserver": ("pserver", "--index", "1", "--wait-for-members", "0.1"),
    "status": ("ps", "status"),
    "scale": ("cluster", "scale", "--pservers", "2"),
    "snapshot": ("cluster", "snapshot"),
    "stop": ("cluster", "stop"),
}
TOKENS = {
    "none": ((), "asks for a token, and this process has none"),
    "another": (("--token-file", "other"), "does not know the token of this process"),
}

each_command = pytest.mark.parametrize("name", COMMANDS)


def ask(folder: Path, name: str, coordinator: str, *more: str) -> Command:
    return run(folder, *COMMANDS[name], "--coordinator", coordinator, *more)


@each_command
@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:port", "127.0.0.1:99999", ":30240", "127.0.0.1:0"])
def test_an_address_that_is_none_is_refused_before_anything_is_tried(tmp_path, name, text):
    with cluster(tmp_path):
        finished = ask(tmp_path, name, text)
    assert finished.wait() == USAGE, finished.words
    assert "error: `--coordinator`: `" in finished.words
    assert "hint: give the address that the first server prints" in finished.words


@each_command
def test_who_finds_nobody_is_told_where_it_has_looked(tmp_path, name):
    address = f"127.0.0.1:{free_port()}"
    with cluster(tmp_path):
        finished = ask(tmp_path, name, address)
    assert finished.wait() == FAILURE, finished.words
    assert f"cannot connect to {address}: Connection refused" in finished.words
    assert "is it running, and is this its address?" in finished.words


def guarded(running: Running) -> None:
    (running.folder / "token").write_text("0123456789abcdef0123456789abcdef")
    (running.folder / "other").write_text("1123456789abcdef0123456789abcdef")
    running.pserver("--index", "0", "--token-file", str(running.folder / "token"))


@each_command
@pytest.mark.parametrize("token", TOKENS)
def test_a_wrong_token_ends_the_command_at_once(tmp_path, name, token):
    arguments, words = TOKENS[token]
    patient = ("--wait-for-members", "600") if name == "pserver" else ()
    with cluster(tmp_path) as running:
        guarded(running)
        finished = ask(tmp_path, name, running.address, *arguments, *patient)
    assert finished.wait() == USAGE, finished.words
    assert words in finished.words
    assert "hint: give all processes of the cluster the same token" in finished.words


@pytest.fixture
def taken() -> Iterator[int]:
    """A port where somebody listens who says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("option", "words", "hint"),
    [
        ("--port", "cannot listen on 127.0.0.1:{}: ", "hint: give it another port, or 0"),
        (
            "--metrics-port",
            "cannot listen on 127.0.0.1:{} for metrics: ",
            "hint: give `--metrics-port` another",
        ),
    ],
)
def test_a_port_that_is_taken_is_named_with_what_it_was_for(tmp_path, taken, option, words, hint):
    finished = run(tmp_path, "pserver", option, str(taken))
    assert finished.wait() == FAILURE, finished.words
    assert "error: " + words.format(taken) in finished.words
    assert hint in finished.words


def test_somebody_else_at_the_address_of_the_coordinator_is_thought_of(tmp_path, taken):
    finished = ask(tmp_path, "status", f"127.0.0.1:{taken}")
    assert finished.wait() == FAILURE, finished.words
    assert f"error: 127.0.0.1:{taken} has not answered" in finished.words
    assert "hint: is this the address of pserver 0" in finished.words


def test_no_servers_at_all_are_refused_before_anybody_is_asked(tmp_path):
    finished = run(tmp_path, "cluster", "scale", "--pservers", "0", "--coordinator", "127.0.0.1:9")
    assert finished.wait() == USAGE, finished.words
    assert "127.0.0.1:9" not in finished.words


def test_a_folder_for_snapshots_that_can_never_be_ends_a_server_at_once(tmp_path):
    (tmp_path / "file").touch()
    finished = run(tmp_path, "pserver", "--snapshots", "file/snapshots")
    assert finished.wait() == FAILURE, finished.words
    assert "error: cannot make folder `file/snapshots` for snapshots: Not a directory" in finished.words
    assert "hint: give `--snapshots` a folder" in finished.words
    assert "coordinator." not in finished.words
