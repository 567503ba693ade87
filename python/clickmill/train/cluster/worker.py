"""Steps of a trainer of a cluster.

    compute   each stream's batch, cut over the workers
    step      one frame to every server: gradients of all streams, the question for the rows of the batches
              that follow, and keys of those after them, whose rows servers find during the next batch;
              beside it, when workers are idle, the next batches are read

A trainer has one stream, or one for each lane that it works for. What it pushed is applied before it reads:
its own updates are never stale.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clickmill import _core
from clickmill.train.compute import Pulled
from clickmill.train.parameters import Update
from clickmill.train.step import diverged
from clickmill.train.stopwatch import LOST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clickmill._core import Batch, Push, Session, Ticket
    from clickmill.ps.coordinator import Membership
    from clickmill.ps.tables import TableSet
    from clickmill.train.cluster.stream import Stream, Taken
    from clickmill.train.compute import Computer
    from clickmill.train.crew import Crew
    from clickmill.train.features import Feed
    from clickmill.train.parameters import Rates
    from clickmill.train.replica import Replicas
    from clickmill.train.stopwatch import Stopwatch


@dataclass(frozen=True)
class Tools:
    """What a worker uses and does not change from lease to lease."""

    computer: Computer
    feeds: tuple[Feed, ...]
    tables: TableSet
    replicas: Replicas
    rates: Rates
    stopwatch: Stopwatch
    reads_between: int
    """Pushes between two reads of the dense parameters."""
    batch_size: int
    has_rounds: bool
    """Whether gradients of all lanes meet on the servers."""


class LeaseLost(Exception):  # noqa: N818 - no failure: what was leased is dealt anew
    """The leases at hand are void; ask for others."""


class Worker:
    """Trains streams in one epoch of a cluster."""

    def __init__(
        self,
        tools: Tools,
        session: Session,
        membership: Membership,
        after_step: Callable[[Batch, float, int], None],
        fence_state: Callable[[], str | None],
    ) -> None:
        self._tools = tools
        self.session = session
        self._membership = membership
        self._after_step = after_step
        self._fence_state = fence_state
        self._numbers = {name: number for number, name in enumerate(tools.tables)}
        self._step = 0
        self._fence = membership.fence
        self._pushes = 0
        self._round = 0
        self._until: int | None = None
        # Trainers of a round come to a fence together: none may have found rows that others have not.
        self._depth = 1 if tools.has_rounds else 2
        self._is_ahead = False
        """The servers have found rows for batches that were not asked for."""

    @property
    def step(self) -> int:
        """Updates that the servers have applied, as far as this trainer knows."""
        return self._step

    def close(self) -> None:
        """The epoch is over, or the run."""

    def begin_rounds(self, number: int, until: int | None) -> None:
        """Lanes were dealt: the round that comes, and the one before which all come to a fence unasked."""
        self._round, self._until = number, until

    def train(self, crew: Crew, streams: Sequence[Stream], pass_number: int) -> None:
        """Train until a stream ends, or LeaseLost; streams keep what they have read."""
        self._begin([stream for stream in streams if stream.current is None])
        empty = [stream for stream in streams if stream.current is None]
        streams = [stream for stream in streams if stream.current is not None]
        ahead = crew.ahead(lambda: self._read_ahead(streams))
        try:
            while not any(stream.is_ended for stream in (*streams, *empty)):
                updates = [self._compute(crew, stream, pass_number, ahead.start) for stream in streams]
                with self._tools.stopwatch.waiting():
                    ahead.wait()
                ahead = crew.ahead(lambda: self._read_ahead(streams))
                self._exchange(streams, updates, empty, ahead.start)
        except BaseException:
            ahead.settle()
            raise
        if ahead.is_started:
            with self._tools.stopwatch.waiting():
                ahead.wait()

    def _begin(self, streams: Sequence[Stream]) -> None:
        """Read the first batch of new streams; one without any stays without."""
        firsts = [(stream, self._take(stream)) for stream in streams]
        taken = [(stream, first) for stream, first in firsts if first is not None]
        if taken:
            self._read([stream for stream, _ in taken], [first for _, first in taken])

    def _read_ahead(self, streams: Sequence[Stream]) -> None:
        for stream in streams:
            while not stream.has_ahead(self._depth):
                stream.ahead.append(self._take(stream))

    def _take(self, stream: Stream) -> Taken | None:
        with self._tools.stopwatch.measure("read"):
            batch = stream.next()
        if batch is None:
            return None
        with self._tools.stopwatch.measure("locate"):
            feeds = [(feed.group, self._numbers[feed.table]) for feed in self._tools.feeds]
            return batch, self.session.locate(batch, feeds)

    def _compute(self, crew: Crew, stream: Stream, pass_number: int, beside: Callable[[], None]) -> Update:
        assert stream.current is not None
        pulled = stream.current
        computed = self._tools.computer.compute(crew, pulled, self._step * 1024 + stream.lane, beside)
        loss = sum(each.loss for each in computed)
        if not math.isfinite(loss):
            raise diverged(f"the loss is {loss}", pass_number, self._step)
        return Update(
            step=self._step,
            pass_number=pass_number,
            batch=pulled.batch,
            lookups=pulled.lookups,
            gradients=[each.gradients for each in computed],
            leaves=[leaf for each in computed for leaf in each.leaves],
            scores=[each.scores_B for each in computed],
            loss=loss,
        )

    def _exchange(
        self,
        streams: Sequence[Stream],
        updates: Sequence[Update],
        empty: Sequence[Stream],
        beside: Callable[[], None],
    ) -> None:
        """Push all updates and read the rows of what follows, unless a fence comes first.

        `beside` starts what else is to be done meanwhile.

        Units without a batch end with the same push: a round waits for all lanes of this trainer.
        """
        following = [stream.ahead.popleft() for stream in streams]
        with self._tools.stopwatch.measure("push"):
            pushes = [
                self._push(stream, update, is_last=after is None)
                for stream, update, after in zip(streams, updates, following, strict=True)
            ] + [self._push_nothing(stream) for stream in empty]
        going_on = [
            (stream, after) for stream, after in zip(streams, following, strict=True) if after is not None
        ]
        # What all trainers of a round have heard of: the answer to this push may name the next one already.
        fence = self._fence
        self._round += 1
        is_counted = self._until is not None and self._round >= self._until
        is_wanted = is_counted or fence > self._membership.fence
        # Rows that were found already belong before the fence, and their batch with them.
        is_parking = is_wanted and not self._is_ahead
        asked = [] if is_parking else going_on
        later = [] if is_wanted else self._later([stream for stream, _ in asked])
        for stream in streams:
            stream.current = None
        beside()
        self._step_all(pushes, [stream for stream, _ in asked], [after for _, after in asked], later)
        self._is_ahead = bool(later)
        for stream, update, after in zip(streams, updates, following, strict=True):
            stream.is_ended = after is None
            self._after_step(update.batch, update.loss, self._step)
        for stream in empty:
            stream.is_ended = True
        if is_counted:
            # Everyone of the round parks here, so the fence that it has made due may be obeyed at once.
            fence = self._fence
        if is_parking and fence > self._membership.fence:
            self._park(fence)
        if going_on and not asked:
            self._read([stream for stream, _ in going_on], [after for _, after in going_on])

    def _later(self, streams: Sequence[Stream]) -> list[Ticket]:
        """What the servers may look for while the batches that follow are computed."""
        if self._depth == 1:
            return []
        return [taken[1] for stream in streams if stream.ahead and (taken := stream.ahead[0]) is not None]

    def _push(self, stream: Stream, update: Update, *, is_last: bool) -> Push:
        tools, batch = self._tools, update.batch
        scale = tools.rates.scale(update, _core.DenseOptimizer.square_sum)
        if tools.rates.clip_norm is None:
            update.gather()
        for feed, lookup in zip(tools.feeds, update.lookups, strict=True):
            if tools.tables[feed.table].has_statistics:
                lookup.observe()
        factor = tools.rates.factor(update) * self._share(batch)
        assert stream.ticket is not None
        return _core.Push(
            stream.ticket,
            update.lookups,
            [tools.tables.learning_rate(feed.table) * factor for feed in tools.feeds],
            scale,
            update.gradients,
            tools.rates.dense * factor,
            batch.num_rows,
            stream.entry(batch, is_last=is_last),
            update.scores,
            batch.labels[:, 0],
            batch.weights,
            batch.group_keys,
            lane=stream.lane,
            is_last=is_last and stream.is_last_unit,
        )

    def _share(self, batch: Batch) -> float:
        """What a short batch counts for: units end in one, and its gradient is the mean of fewer samples.

        In rounds the servers weigh all parts by their samples.
        """
        return 1.0 if self._tools.has_rounds else min(batch.num_rows / self._tools.batch_size, 1.0)

    def _read(self, streams: Sequence[Stream], taken: Sequence[Taken]) -> None:
        self._step_all([], streams, taken)

    def _step_all(
        self,
        pushes: list[Push],
        streams: Sequence[Stream],
        taken: Sequence[Taken],
        later: Sequence[Ticket] = (),
    ) -> None:
        self._pushes += len(pushes)
        self._pull(streams, taken, pushes, later, wants_dense=self._wants_dense(pushes))

    def _wants_dense(self, pushes: Sequence[Push]) -> bool:
        """A first read must see everything; after that only every so many pushes."""
        return not pushes or self._pushes % self._tools.reads_between == 0

    def _pull(
        self,
        streams: Sequence[Stream],
        taken: Sequence[Taken],
        pushes: Sequence[Push] = (),
        later: Sequence[Ticket] = (),
        *,
        wants_dense: bool,
    ) -> None:
        """One frame to every server: `pushes`, and the keys of what was taken and of what comes `later`."""
        tools = self._tools
        arrays = tools.replicas.arrays if wants_dense else None
        tickets = [ticket for _, ticket in taken]
        with tools.stopwatch.measure("wait", failed=LOST):
            started = time.perf_counter()
            self._step, self._fence, lookups = self.session.step(pushes, tickets, True, arrays, later)
            push, pull, wait = self.session.take_seconds()
            pull = max(pull, time.perf_counter() - started - push - wait)
            tools.stopwatch.add({"push": push, "pull": pull, "wait": wait})
        for stream, (batch, ticket), rows in zip(streams, taken, lookups, strict=True):
            stream.current = Pulled(batch, rows)
            stream.ticket = ticket

    def _park(self, fence: int) -> None:
        with self._tools.stopwatch.measure("wait", failed=LOST):
            released = self._membership.park(fence, self._fence_state())
        if released["kind"] != "released":
            raise LeaseLost
        self._membership.fence = max(self._membership.fence, released["number"])
        self._until = released["until"]
        if not released["keep"] or released["epoch"] != self._membership.epoch:
            raise LeaseLost

    def _push_nothing(self, stream: Stream) -> Push:
        entry = stream.entry(None, is_last=True)
        return _core.Push.empty(entry, lane=stream.lane, is_last=stream.is_last_unit)
