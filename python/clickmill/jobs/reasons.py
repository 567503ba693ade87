"""Why a job does not go on, and what a person can do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal[
    "gang",
    "queue",
    "resources",
    "image",
    "volume",
    "quota",
    "access",
    "node",
    "pod",
    "failure",
    "snapshot",
    "crash",
    "waiting",
]


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that keeps a job, or has ended it."""

    kind: Kind
    words: str
    remedy: str | None = None
    """What a person must do; None where waiting is all that there is to do."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def listed(names: list[str]) -> str:
    """`trainer 0, trainer 1 and 3 more`."""
    shown = names if len(names) <= 4 else names[:3]
    more = "" if len(shown) == len(names) else f" and {len(names) - len(shown)} more"
    return ", ".join(shown) + more
