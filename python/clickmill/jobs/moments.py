"""Moments as API servers write them."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_moment(text: str) -> datetime:
    """`2026-01-31T08:15:30Z`, with or without a fraction."""
    head, _, fraction = text.removesuffix("Z").partition(".")
    moment = datetime.fromisoformat(head).replace(tzinfo=UTC)
    return moment.replace(microsecond=int(f"{fraction:0<6}"[:6])) if fraction else moment


def seconds_between(start: str, end: str | None = None) -> float:
    """From one moment to another, or to now; never less than nothing: clocks differ."""
    until = datetime.now(UTC) if end is None else parse_moment(end)
    return max(0.0, (until - parse_moment(start)).total_seconds())
