"""Sizes as people write them."""

from __future__ import annotations

from clickmill.errors import ConfigError

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(text: str) -> int | None:
    """`8GB`, `500MB`, `64MiB` or bytes; None where nothing is said."""
    if not text:
        return None
    digits = text.upper().removesuffix("IB").removesuffix("B")
    unit = digits[-1:] if digits[-1:].isalpha() else ""
    base = 1024.0 if text.upper().endswith("IB") else 1000.0
    try:
        return round(float(digits.removesuffix(unit)) * base ** _POWERS[unit])
    except (KeyError, ValueError, OverflowError) as error:
        raise ConfigError(f"`{text}` is no size; write `8GB`, `500MB` or a number of bytes") from error
