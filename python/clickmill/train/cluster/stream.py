"""One stream of batches: a unit that this trainer has leased, from its position to its end."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickmill.data.bad_lines import bad_line_words
from clickmill.errors import AbsentSlotError, NoSamplesError

if TYPE_CHECKING:
    from clickmill._core import Batch, Ticket
    from clickmill.data.source import BatchSource
    from clickmill.train.compute import Pulled

    Taken = tuple[Batch, Ticket]


@dataclass
class Stream:
    """Batches of one unit, in order."""

    lease: int
    unit: int
    lane: int
    is_last_unit: bool
    """The lane has no other unit after this one in the pass."""
    source: BatchSource
    current: Pulled | None = None
    ticket: Ticket | None = None
    """Of the current batch."""
    ahead: deque[Taken | None] = field(default_factory=deque)
    """Batches after the current one that were read already; None is the end."""
    is_ended: bool = False

    @classmethod
    def of_grant(cls, grant: dict[str, Any], source: BatchSource) -> Stream:
        """From what the coordinator has granted."""
        return cls(
            lease=grant["lease"],
            unit=grant["unit"],
            lane=grant.get("lane", 0),
            is_last_unit=grant.get("is_last_unit", False),
            source=source,
        )

    def next(self) -> Batch | None:
        """The batch after the last one; None at the end, also of a unit in which there is nothing to read.

        A unit may lie within one long line, or hold bad lines only, or none of a rare slot. The coordinator
        ends a run that has no samples, or lacks a slot, in a whole pass.
        """
        try:
            return self.source.next()
        except (NoSamplesError, AbsentSlotError):
            return None

    def has_ahead(self, count: int) -> bool:
        """Whether so many batches after the current one were read, or all that there are."""
        return len(self.ahead) >= count or (bool(self.ahead) and self.ahead[-1] is None)

    def entry(self, batch: Batch | None, *, is_last: bool) -> str:
        """What the ledger is told when `batch` is trained on; without one: that the unit was empty."""
        if batch is None:
            return self.account(None, samples=0, batches=0, is_last=is_last)
        return self.account(batch.position, samples=batch.num_rows, batches=1, is_last=is_last)

    def account(self, position: str | None, *, samples: int, batches: int, is_last: bool) -> str:
        """What the ledger is told of several batches; `position` is the one after the last of them."""
        entry: dict[str, Any] = {
            "unit": self.unit,
            "position": position,
            "samples": samples,
            "batches": batches,
            "is_last": is_last,
        }
        if is_last:
            entry["reading"] = self._reading()
        return json.dumps({"lease": self.lease, "entry": entry})

    def _reading(self) -> dict[str, Any]:
        """What there was to see in the unit; only all units together tell whether that is a fault."""
        bad = json.loads(self.source.bad_lines())
        return {
            "bad_lines": bad["count"],
            "first_bad": bad_line_words(bad["first"][0]) if bad["first"] else None,
            "absent": self.source.absent_slots(),
        }

    def close(self) -> None:
        """Stop reading."""
        self.source.close()
