"""What pods ask for, as Kubernetes writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clickmill.config.backend import RoleResources

DEFAULT_MEMORY = "1Gi"
"""Asked for where nothing is said: a pod that asks for none is the first to go when a node runs short."""
CARDS = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Request:
    """Of each pod of a role."""

    requests: dict[str, str]
    limits: dict[str, str]

    def to_object(self) -> dict[str, dict[str, str]]:
        """As it stands under `resources` of a container."""
        return {"requests": self.requests, **({"limits": self.limits} if self.limits else {})}


def role_request(asked: RoleResources, *, cores: str, cards: int = 0) -> Request:
    """`cores` and the default memory where `asked` says nothing. Cores have no limit unless one is named.

    Memory that is asked for is also the limit, so that a pod which takes more is ended with a reason and does
    not drag its node along; where nothing is asked for nobody knows how much it should be.
    """
    requests = {"cpu": asked.cpu or cores, "memory": asked.memory or DEFAULT_MEMORY}
    limits = {}
    if asked.cpu_limit:
        limits["cpu"] = asked.cpu_limit
    memory_limit = asked.memory_limit or asked.memory
    if memory_limit:
        limits["memory"] = memory_limit
    if asked.ephemeral_storage:
        requests["ephemeral-storage"] = limits["ephemeral-storage"] = asked.ephemeral_storage
    if cards:
        requests[CARDS] = limits[CARDS] = str(cards)  # cards are not shared: both must be equal
    return Request(requests, limits)


_SUFFIXES = {
    "": 1.0,
    "m": 1e-3,
    **{unit: 1000.0 ** (power + 1) for power, unit in enumerate("kMGTPE")},
    **{f"{unit}i": 1024.0 ** (power + 1) for power, unit in enumerate("KMGTPE")},
}


def amount(quantity: str) -> float:
    """`500m` is 0.5, `1Gi` is 1073741824."""
    digits = quantity.rstrip("mkKMGTPEi")
    return float(digits) * _SUFFIXES[quantity[len(digits) :]]
