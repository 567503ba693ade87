"""Batches in rounds: one of each rank, until no rank has any left.

Ranks run out of samples at different times. Who has none left goes on with batches without samples, so that
it takes part in every update, until the last one is done.
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any

from clickmill._core import Batch
from clickmill.data.bad_lines import bad_line_words
from clickmill.errors import AbsentSlotError, DataError, NoSamplesError

if TYPE_CHECKING:
    from collections.abc import Callable

    from clickmill._core import Schema
    from clickmill.data.source import BatchSource
    from clickmill.train.collective.channel import Channel

_MOST_BAD_LINES = 10
"""Bad lines that are told one by one."""


class RoundSource:
    """The share of one rank in a pass; all ranks call `next` the same number of times."""

    def __init__(
        self,
        open_share: Callable[[], BatchSource],
        schema: Schema,
        channel: Channel,
        *,
        max_bad_lines: int | None = None,
    ) -> None:
        """`max_bad_lines` of all ranks together; each of them stops at as many of its own."""
        self._max_bad_lines = max_bad_lines
        self._channel = channel
        self._empty = Batch.empty(schema)
        self._totals: deque[int] = deque()
        self._absent: AbsentSlotError | None = None
        self._is_out = False
        try:
            self._source: BatchSource | None = open_share()
        except NoSamplesError:
            self._source = None

    def next(self) -> Batch | None:
        """The next batch, without samples where this rank has none left; None when nobody has.

        AbsentSlotError there if a slot has occurred in nobody's samples.
        """
        batch = self._next_own()
        num_rows = 0 if batch is None else batch.num_rows
        total = int(self._channel.gather_numbers([num_rows]).sum())
        if total > 0:
            self._totals.append(total)
            return self._empty if batch is None else batch
        self._check_bad_lines()
        self._check_slots()
        return None

    def samples(self, batch: Batch) -> int:
        """Samples of the oldest round that has not been asked for; `batch` was this rank's part of it."""
        del batch
        return self._totals.popleft()

    def progress(self) -> tuple[int, int]:
        """Of this rank's share: the others are as far."""
        return (0, 0) if self._source is None else self._source.progress()

    def bad_lines(self) -> str:
        """Of all ranks."""
        own = {"count": 0, "first": []} if self._source is None else json.loads(self._source.bad_lines())
        found: list[dict[str, Any]] = self._channel.gather_json(own)
        first = [line for each in found for line in each["first"]]
        count = sum(each["count"] for each in found)
        return json.dumps({"count": count, "first": first[:_MOST_BAD_LINES]})

    def absent_slots(self) -> list[str]:
        """Slots that have occurred in nobody's samples so far."""
        own = None if self._source is None else self._source.absent_slots()
        known = [set(each) for each in self._channel.gather_json(own) if each is not None]
        return sorted(set.intersection(*known)) if known else []

    def close(self) -> None:
        """Stop reading."""
        if self._source is not None:
            self._source.close()

    def _next_own(self) -> Batch | None:
        if self._is_out or self._source is None:
            return None
        try:
            batch = self._source.next()
        except NoSamplesError:
            # A range of bytes in which no line starts. That nobody has samples is told by the trainer.
            self._source.close()
            self._source = batch = None
        except AbsentSlotError as error:
            # It may have occurred in the samples of another rank.
            self._absent, batch = error, None
        self._is_out = batch is None
        return batch

    def _check_bad_lines(self) -> None:
        bad = json.loads(self.bad_lines())
        if self._max_bad_lines is not None and bad["count"] > self._max_bad_lines:
            raise DataError(
                f"{bad['count']} bad lines in the samples of all ranks; allowed: {self._max_bad_lines}; "
                f"the first: {bad_line_words(bad['first'][0])}",
                hint="mend them, or raise `max_bad_lines` of the data set",
            )

    def _check_slots(self) -> None:
        absent = self.absent_slots()
        if absent and self._absent is not None:
            raise self._absent
        if absent:
            raise AbsentSlotError(f"slot `{absent[0]}` has not occurred in the samples of any rank")
