"""A table of a cluster, for programs that want its rows by sign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clickmill import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Signs = NDArray[np.uint64]


class RemoteTable:
    """Rows of table `number` on the servers of `session`; as `_core.Table` in this process, by sign.

    Steps are counted by the servers, one for each `apply`. Not for several threads.
    """

    def __init__(self, session: _core.Session, number: int) -> None:
        self._session = session
        self._number = number
        self._tickets: dict[int, _core.Ticket] = {}

    def lookup(self, signs: Signs, train: bool) -> _core.Lookup:
        """Rows of distinct `signs`; with `train` rows are made for those that are admitted."""
        ticket = self._session.locate_signs(self._number, signs)
        _, _, lookups = self._session.step([], [ticket], train)
        lookup = lookups[0][0]
        if train:
            self._tickets[id(lookup)] = ticket
        return lookup

    def apply(self, lookup: _core.Lookup, learning_rate: float, scale: float = 1.0) -> None:
        """One optimizer step on the servers, with the gradients gathered in a lookup of this table."""
        ticket = self._tickets.pop(id(lookup))
        none = np.zeros(0, np.float32)
        push = _core.Push(ticket, [lookup], [learning_rate], scale, [], 0.0, 0, "", [], none)
        self._session.step([push], [])

    def pull(self, signs: Signs, train: bool) -> Floats:
        """Weights [U,D] of `signs`; with `train`, admitted signs get a row."""
        return self.lookup(signs, train).values()

    def push(self, signs: Signs, gradients: Floats, learning_rate: float, scale: float = 1.0) -> None:
        """Apply gradients [U,D] to the rows of distinct `signs`, which are made where they are admitted."""
        lookup = self.lookup(signs, train=True)
        lookup.add_gradients(gradients)
        self.apply(lookup, learning_rate, scale)

    def peek(self, signs: Signs) -> Floats:
        """Weights [U,D] of `signs`, without any effect on the table."""
        return self.lookup(signs, train=False).values()

    def begin_step(self, step: int) -> None:
        """Nothing: the servers count the steps, and an `apply` is one."""
