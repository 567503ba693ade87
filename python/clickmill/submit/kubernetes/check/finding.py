"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "unknown", "warn", "lacks"]
"""`lacks`: a job cannot run without it. `unknown`: this user may not look, or nobody can."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    topic: str
    what: str
    state: State
    found: str
    remedy: str = ""
    """The exact thing to do where something is amiss."""
