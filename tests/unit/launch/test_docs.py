"""The guide lists every variable that is read, and every key of hosts.yaml."""

from __future__ import annotations

import re
from pathlib import Path

from clickmill.launch import roles
from clickmill.launch.hosts import HostsConfig

GUIDE = (Path(__file__).parents[3] / "docs/guides/clusters.md").read_text(encoding="utf-8")


def test_the_guide_lists_every_variable_of_a_role() -> None:
    read = {
        name
        for value in vars(roles).values()
        if isinstance(value, tuple)
        for name in value
        if isinstance(name, str) and name.isupper()
    }
    assert "CLICKMILL_ROLE" in read
    assert read - set(re.findall(r"`(\w+)(?:=1)?`", GUIDE)) == set()


def test_the_guide_lists_every_key_of_hosts_yaml() -> None:
    section = GUIDE.partition("## Over ssh")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \|([^|]*)\|", section, re.MULTILINE))
    assert set(rows) == set(HostsConfig.model_fields)
