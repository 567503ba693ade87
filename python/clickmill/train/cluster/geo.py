"""`geo`: a trainer trains copies of what the servers hold, and exchanges what it has learnt now and then.

A step is that of a run on one machine. Every `geo_step` batches rows that were touched since and all dense
parameters are exchanged, and training goes on meanwhile:

    delta = (local - old) / trainers    sent, and added by the servers
    old += delta
    local += server - old; old = server    with the answer

At the end of a unit there is one more exchange, which is waited for: the unit is done when the servers have
what was learnt from it. Before a fence they are only told; their answer comes with the next exchange.

`trainers` is the number that the job was made for, not the number of those who are there: it is the same for
all, and a trainer that comes late or dies changes nobody's arithmetic. The account of the batches goes with
the exchange, so a trainer that dies takes with it what has not arrived, and others train on it again.

Rows travel whole, with statistics and optimizer state. The state of the dense optimizer is each trainer's
own; the servers keep a mean of it, which snapshots hold and which a trainer that joins begins with. Every
pass begins like that: with what the servers hold, once they have evicted what is due.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from clickmill import _core
from clickmill.train.cluster.ahead import Ahead
from clickmill.train.cluster.window import Window
from clickmill.train.cluster.worker import LeaseLost, Worker
from clickmill.train.compute import Pulled
from clickmill.train.parameters import LocalParameters, Rates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, Located, Lookup, Push, Session
    from clickmill.ps.coordinator import Membership
    from clickmill.train.cluster.stream import Stream
    from clickmill.train.cluster.worker import Tools
    from clickmill.train.crew import Crew
    from clickmill.train.parameters import Update

    Array = NDArray[np.float32]
    Found = tuple[Batch, list[Located]]


_BATCHES_AHEAD = 8
"""Batches whose rows are brought before they are needed: servers that apply an exchange answer late."""


@dataclass(frozen=True)
class WeighedRates(Rates):
    """A short batch, in which units end, counts for as much as it has samples."""

    batch_size: int

    def factor(self, update: Update) -> float:
        """What all base rates are multiplied by in this update."""
        return super().factor(update) * min(update.batch.num_rows / self.batch_size, 1.0)


@dataclass(frozen=True)
class GeoSettings:
    """What a trainer with parameters of its own has to know."""

    optimizer_json: str
    geo_step: int
    """Batches between two exchanges."""
    trainers: int
    """How many the job was made for."""


class Copies(Protocol):
    """Between parameters of this process and those of the servers: `_core.Exchange`, or nothing."""

    @property
    def first_step(self) -> int:
        """Updates of the run when the copies were made."""

    @property
    def is_full(self) -> bool:
        """So much was touched that it should be exchanged at once."""

    def fetch(self, batch: Batch, feeds: Sequence[tuple[int, int]], /) -> tuple[int, int] | None:
        """Bring the rows of a batch that are not here yet."""

    def touch(self, numbers: Sequence[int], lookups: Sequence[Lookup], /) -> None:
        """Rows are about to be trained on."""

    def depart(self, push: Push, batches: int, parameters: Sequence[Array], /, is_answered: bool) -> None:
        """Take down what was learnt."""

    def deliver(self) -> tuple[int, int]:
        """Tell the servers, and hear from them; updates of the run, and the fence that is wanted."""

    def arrive(self, parameters: Sequence[Array], /) -> None:
        """Move dense parameters by what was heard."""


class GeoWorker(Worker):
    """Trains units on copies, in one epoch of a cluster."""

    _counts_scores = True

    def __init__(
        self,
        tools: Tools,
        session: Session,
        membership: Membership,
        after_step: Callable[[Batch, float, int], None],
        fence_state: Callable[[], str | None],
        *,
        sending: Session,
        settings: GeoSettings,
    ) -> None:
        super().__init__(tools, session, membership, after_step, fence_state)
        self._sending = sending
        self._settings = settings
        self._courier = ThreadPoolExecutor(1, "courier")
        self._under_way: Future[tuple[int, int]] | None = None
        """What was learnt, on its way to the servers."""
        self._departed = 0
        """The step in which it was."""
        self._apart = 0
        """Batches since the last exchange."""
        self._feeds = [(feed.group, self._numbers[feed.table]) for feed in tools.feeds]
        self._tables_of_feeds = [number for _, number in self._feeds]
        self._pass: int | None = None
        self._dense: list[Array] = []
        """The dense parameters between two units: others write to those of the net."""

    def close(self) -> None:
        """End the courier; what it has not delivered is void, and leased again."""
        self._courier.shutdown()

    def train(self, crew: Crew, streams: Sequence[Stream], pass_number: int) -> None:
        """Train units to their end, or LeaseLost."""
        self._resume(pass_number)
        try:
            for stream in streams:
                self._train_unit(crew, stream, pass_number)
        finally:
            self._dense = [array.copy() for array in self._tools.replicas.arrays]

    def _resume(self, pass_number: int) -> None:
        if self._pass != pass_number:
            with self._tools.stopwatch.measure("pull"):
                self._begin_pass()
            self._pass = pass_number
        else:
            self._restore_dense()

    def _restore_dense(self) -> None:
        for array, kept in zip(self._tools.replicas.arrays, self._dense, strict=True):
            array[:] = kept

    def _begin_pass(self) -> None:
        """Make copies of what the servers hold."""
        tools = self._tools
        optimizer = self._make_optimizer()
        tables = tools.tables.clear()
        # Asked for by the courier: this thread waits for it where a signal can end the wait.
        beginning = self._courier.submit(
            _core.Exchange,
            self.session,
            self._sending,
            tables,
            optimizer,
            tools.replicas.arrays,
            self._settings.trainers,
        )
        self._copies: Copies = beginning.result()
        self._apart = 0
        self._step = self._copies.first_step
        tools.tables.begin_step(self._step)
        self._parameters = self._make_parameters(optimizer)

    def _make_optimizer(self) -> _core.DenseOptimizer:
        sizes = [array.size for array in self._tools.replicas.arrays]
        return _core.DenseOptimizer(self._settings.optimizer_json, sizes)

    def _make_parameters(self, optimizer: _core.DenseOptimizer) -> LocalParameters:
        tools = self._tools
        return LocalParameters(
            tables=tools.tables,
            feeds=tools.feeds,
            replicas=tools.replicas,
            optimizer=optimizer,
            rates=WeighedRates(
                tools.rates.dense, tools.rates.schedule, tools.rates.clip_norm, tools.batch_size
            ),
            stopwatch=tools.stopwatch,
        )

    def _train_unit(self, crew: Crew, stream: Stream, pass_number: int) -> None:
        with Ahead(lambda: self._find(stream), _BATCHES_AHEAD) as ahead, self._abandoning():
            with self._tools.stopwatch.waiting():
                found = ahead.take()
            if found is None:
                self._finish_empty(stream)
                return
            window = Window(has_scores=self._counts_scores)
            lookups = None
            while found is not None:
                stream.current = self._pulled(found, lookups)
                update = self._compute(crew, stream, pass_number, _nothing)
                with self._tools.stopwatch.waiting():
                    found = ahead.take()
                window.add(update)
                following = None if found is None else found[1]
                lookups = self._parameters.update(crew, update, _nothing, following)
                self._step += 1
                self._apart += 1
                self._communicate(stream, window, is_last=found is None)
                self._after_step(update.batch, update.loss, self._step)

    @contextlib.contextmanager
    def _abandoning(self) -> Iterator[None]:
        """Whatever ends more than a lease ends the wait for rows, too.

        No signal reaches the thread that waits for them, and whoever leaves waits for that thread.
        """
        try:
            yield
        except LeaseLost:
            raise
        except BaseException:
            self.session.abandon()
            raise

    def _finish_empty(self, stream: Stream) -> None:
        """A unit without a sample: only its account is sent."""
        self._arrive()
        with self._tools.stopwatch.measure("push"):
            _, fence, _ = self._sending.step([self._push_nothing(stream)], [])
        self._fence = max(self._fence, fence)
        stream.is_ended = True

    def _communicate(self, stream: Stream, window: Window, *, is_last: bool) -> None:
        """Do what is due between two batches."""
        if self._under_way is not None and self._under_way.done():
            self._arrive()
        self._fence = max(self._fence, self._membership.wanted_fence)
        fence = self._fence
        must_park = fence > self._membership.fence
        if is_last or must_park:
            # One trainer has nothing to hear that could not wait.
            is_answered = is_last and self._settings.trainers > 1
            self._depart(stream, window, is_last=is_last, is_answered=is_answered)
            self._arrive()
            stream.current = None
            stream.is_ended = is_last
        elif self._is_due():
            self._depart(stream, window, is_last=False, is_answered=True)
        if must_park:
            self._park(fence)

    def _find(self, stream: Stream) -> Found | None:
        """The next batch, with its rows here; runs beside the batch before."""
        with self._tools.stopwatch.measure("read"):
            batch = stream.next()
        if batch is None:
            return None
        with self._tools.stopwatch.measure("pull"):
            heard = self._copies.fetch(batch, self._feeds)
        if heard is not None:
            self._fence = max(self._fence, heard[1])
        return batch, self._parameters.locate(batch)

    def _pulled(self, found: Found, lookups: list[Lookup] | None) -> Pulled:
        batch, located = found
        if lookups is None:
            lookups = self._parameters.fill(located)
        self._copies.touch(self._tables_of_feeds, lookups)
        return Pulled(batch, lookups)

    def _is_due(self) -> bool:
        return self._apart >= self._settings.geo_step or self._copies.is_full

    def _depart(self, stream: Stream, window: Window, *, is_last: bool, is_answered: bool) -> None:
        # One at a time: they are numbered, and each counts on the one before.
        self._arrive()
        batches = window.batches
        push = window.take(stream, is_last=is_last)
        with self._tools.stopwatch.measure("push"):
            self._copies.depart(push, batches, self._tools.replicas.arrays, is_answered=is_answered)
        self._departed = self._step
        if is_answered:
            self._apart = 0
        self._under_way = self._courier.submit(self._copies.deliver)

    def _arrive(self) -> None:
        """Take over what the servers have answered to what is under way; waits for it."""
        if self._under_way is None:
            return
        under_way, self._under_way = self._under_way, None
        with self._tools.stopwatch.measure("push"):
            step, fence = under_way.result()
            self._copies.arrive(self._tools.replicas.arrays)
        # Others have made the rest.
        self._step += max(step - self._departed, 0)
        self._fence = max(self._fence, fence)


def _nothing() -> None:
    """Nothing runs beside: batches are read ahead by a thread of its own, the servers count the metrics."""
