"""Whether every slot occurs in the data: a name that is wrong would train on nothing but empty values.

Only formats whose samples name their columns can lack one: the others are checked when they are opened.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from clickmill._core import Batch

logger = logging.getLogger(__name__)

FEW_SAMPLES = 10_000
"""After so many samples a slot that has not occurred yet is told of."""


class SlotSource(Protocol):
    """One pass over data whose samples name their columns."""

    def next(self) -> Batch | None:
        """The next batch; None at the end; AbsentSlotError there if a slot has not occurred."""

    def absent_slots(self) -> list[str]:
        """Slots that have not occurred so far."""

    def close(self) -> None:
        """Stop reading."""


def look_for_slots(source: SlotSource, name: str, *, to_the_end: bool) -> None:
    """Read data set `name` until every slot has occurred, and close it.

    The first samples nearly always have all of them. Where they do not, the others are read as well, many
    times faster than a pass would train on them, and a slot that is in none is an AbsentSlotError now and
    not behind hours of training. Without `to_the_end` it is only warned of.
    """
    num_samples = 0
    is_told = False
    try:
        while (batch := source.next()) is not None:
            num_samples += batch.num_rows
            absent = source.absent_slots()
            if not absent:
                return
            if num_samples >= FEW_SAMPLES and not is_told:
                then = "looking for it in the rest before training" if to_the_end else "is its name right?"
                warn_of_absent(absent, name, num_samples, then)
                is_told = True
                if not to_the_end:
                    return
    finally:
        source.close()


def warn_of_absent(absent: list[str], name: str, num_samples: int, then: str) -> None:
    """Tell of slots that have not occurred so far."""
    slots = ", ".join(f"`{slot}`" for slot in absent)
    logger.warning(
        "%s: no value in the first %d samples of `%s`; %s (`require_slots: false` turns this check off)",
        f"slot {slots}" if len(absent) == 1 else f"slots {slots}",
        num_samples,
        name,
        then,
    )
