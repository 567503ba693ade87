from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clickmill._core import Table

if TYPE_CHECKING:
    from collections.abc import Callable


def make_table(dim: int = 4, **config: Any) -> Table:
    spec = {"name": "t", "dim": dim, "seed": 3, "init": {"kind": "uniform", "scale": 0.5}}
    spec.update(config.pop("spec", {}))
    return Table(json.dumps({"spec": spec, "bucket_bits": 2, **config}))


@pytest.fixture(name="make_table")
def _make_table() -> Callable[..., Table]:
    """A small table; keywords are those of the configuration, `spec` is merged."""
    return make_table
