"""One parameter server in the process of a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clickmill import _core

if TYPE_CHECKING:
    from pathlib import Path


def start_pserver(folder: Path, index: int, num_servers: int, coordinator: str | None) -> _core.Pserver:
    """Server `index`, with its snapshots in `folder`; patient with a slow machine."""
    settings = {
        "address": "127.0.0.1:0",
        "announced": None,
        "is_insecure": False,
        "index": index,
        "coordinator": coordinator,
        "snapshots": str(folder),
        "memory_budget": None,
        "servers": num_servers,
        "dead_after_s": 60.0,
        "closed_after_s": 60.0,
        "wait_for_members_s": 60.0,
        "gather_s": 10.0,
        "wire": {"role": "pserver", "name": "pserver", "deadline_ms": 60_000},
    }
    return _core.Pserver(json.dumps(settings))
