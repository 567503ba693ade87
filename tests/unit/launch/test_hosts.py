from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.errors import ConfigError
from clickmill.launch.address import Address
from clickmill.launch.hosts import load_hosts, split_host


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("root@10.0.0.1", ("root", Address("10.0.0.1", 0))),
        ("root@10.0.0.1:2222", ("root", Address("10.0.0.1", 2222))),
        ("node-1", (None, Address("node-1", 0))),
        ("me@[fd00::1]:22", ("me", Address("fd00::1", 22))),
    ],
)
def test_a_host_is_user_name_and_port(text: str, found: tuple[str | None, Address]) -> None:
    assert split_host(text) == found


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("hosts: []\n", 1, "hosts"),
        ("root_dir: /x\n", 1, "hosts"),
        ("hosts:\n- a\n- '@b'\n", 3, "names no user"),
        ("hosts:\n- a\n- -oProxyCommand=x\n", 3, "is no host"),
        ("hosts:\n- a\n- b c\n", 3, "is no host"),
        ("hosts:\n- a\n- b:ssh\n", 3, "is no port"),
        ("hosts:\n- root@a\n- b\n- me@a:2222\n", 4, "host `a` is number 0 already"),
        ("hosts: [a]\nport: 70000\n", 2, "65535"),
        ("hosts: [a]\nroot-dirr: x\n", 2, "unknown key"),
        ("- a\n", 1, "must be a mapping with the key `hosts`"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_hosts(file)
    (problem,) = caught.value.problems
    assert (problem.line, words in str(problem)) == (line, True), str(problem)


def test_only_hosts_are_required(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts: [root@a, b:2222]\n")
    config = load_hosts(file)
    assert (config.hosts, config.port, config.python) == (("root@a", "b:2222"), 7164, "python3")
