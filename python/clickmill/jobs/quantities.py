"""Quantities of Kubernetes: `500m`, `4Gi`, and what is left of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

Amounts = Mapping[str, Decimal]
"""By resource: cores, bytes, pods, cards."""

_UNITS = {
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    "m": Decimal("0.001"),
    "u": Decimal("0.000001"),
    "n": Decimal("0.000000001"),
}
_BYTES = ("memory", "storage", "ephemeral-storage", "hugepages-")


def parse_quantity(text: str | float) -> Decimal:
    """A number in the base unit: cores, bytes, pieces. ValueError for what is none."""
    words = str(text).strip()
    for unit, factor in _UNITS.items():
        # `1E` and `1e3` are both numbers; only the first has a unit.
        if words.endswith(unit) and words[: -len(unit)].strip():
            try:
                return Decimal(words.removesuffix(unit)) * factor
            except InvalidOperation:
                continue
    try:
        return Decimal(words)
    except InvalidOperation:
        raise ValueError(f"`{text}` is no quantity") from None


def parse_amounts(texts: Mapping[str, str | float] | None) -> dict[str, Decimal]:
    """Quantities by resource, as they stand in an object."""
    return {resource: parse_quantity(text) for resource, text in (texts or {}).items()}


def total(amounts: Iterable[Amounts]) -> dict[str, Decimal]:
    """The sum, resource by resource."""
    found: dict[str, Decimal] = {}
    for each in amounts:
        for resource, amount in each.items():
            found[resource] = found.get(resource, Decimal(0)) + amount
    return found


def minus(room: Amounts, taken: Amounts) -> dict[str, Decimal]:
    """What is left of each resource of `room`; may be less than nothing."""
    return {resource: amount - taken.get(resource, Decimal(0)) for resource, amount in room.items()}


def lacking(wanted: Amounts, room: Amounts) -> dict[str, Decimal]:
    """By how much `room` is too small, for each resource that it is too small in."""
    short = {resource: amount - room.get(resource, Decimal(0)) for resource, amount in wanted.items()}
    return {resource: amount for resource, amount in short.items() if amount > 0}


def words(amounts: Amounts) -> str:
    """`1.5 cpu and 2.0 GiB of memory`."""
    parts = [amount_words(resource, amount) for resource, amount in sorted(amounts.items())]
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def amount_words(resource: str, amount: Decimal) -> str:
    """`1.5 cpu`, `2.0 GiB of memory`, `1 nvidia.com/gpu`."""
    if not resource.startswith(_BYTES):
        return f"{float(amount):g} {resource}"
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit} of {resource}" if unit == "B" else f"{value:.1f} {unit} of {resource}"
        value /= 1024
    return f"{value:.1f} TiB of {resource}"
