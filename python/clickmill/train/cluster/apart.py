"""`fake_rpc`: trainers that send nothing, to measure all but the wire.

Each works on rows and parameters of its own and hears of nobody. Only the account of a finished unit goes
to the servers, or the run would never end; metrics stay empty, and the servers' parameters as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.train.cluster.geo import GeoWorker

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from clickmill._core import Batch, Lookup, Push, Session


class NoCopies:
    """Stands where `_core.Exchange` would: nothing is brought, nothing is told but the account."""

    first_step = 0
    is_full = False

    def __init__(self, session: Session) -> None:
        self._session = session

    def fetch(self, batch: Batch, feeds: Sequence[tuple[int, int]], /) -> None:
        """Nothing to bring."""

    def touch(self, numbers: Sequence[int], lookups: Sequence[Lookup], /) -> None:
        """Nothing to remember."""

    def depart(
        self, push: Push, batches: int, parameters: Sequence[NDArray[np.float32]], /, is_answered: bool
    ) -> None:
        """Only the account of the unit."""
        del batches, parameters, is_answered
        self._push = push

    def deliver(self) -> tuple[int, int]:
        """Send it."""
        step, fence, _ = self._session.step([self._push], [])
        return step, fence

    def arrive(self, parameters: Sequence[NDArray[np.float32]], /) -> None:
        """Nothing was heard."""


class ApartWorker(GeoWorker):
    """Trains units by itself, to their ends."""

    _counts_scores = False

    def _begin_pass(self) -> None:
        if self._pass is not None:
            self._tools.tables.restart(self._step)
            self._restore_dense()
            return
        self._tools.tables.clear()
        self._copies = NoCopies(self.session)
        self._parameters = self._make_parameters(self._make_optimizer())

    def _is_due(self) -> bool:
        return False

    def _arrive(self) -> None:
        own = self._step
        super()._arrive()
        # The servers count accounts; this trainer's tables count its own updates.
        self._step = own
