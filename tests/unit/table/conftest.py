from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clickmill._core import Table

from .remote import Servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def table_config(dim: int = 4, **config: Any) -> dict[str, Any]:
    spec = {"name": "t", "dim": dim, "seed": 3, "init": {"kind": "uniform", "scale": 0.5}}
    spec.update(config.pop("spec", {}))
    return {"spec": spec, "bucket_bits": 2, **config}


def make_table(dim: int = 4, **config: Any) -> Table:
    return Table(json.dumps(table_config(dim, **config)))


@pytest.fixture(name="make_table")
def _make_table() -> Callable[..., Table]:
    """A small table; keywords are those of the configuration, `spec` is merged."""
    return make_table


@pytest.fixture(name="make_any_table", params=["local", "one server", "three servers"])
def _make_any_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """What must be true of every table, wherever its rows are."""
    if request.param == "local":
        yield make_table
        return
    servers = Servers(tmp_path)
    num_servers = 1 if request.param == "one server" else 3
    yield lambda dim=4, **config: servers.table(table_config(dim, **config), num_servers)
    servers.stop()
