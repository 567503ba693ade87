"""`async` with a queue: the trainer goes on while its pushes are under way."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from clickmill.train.cluster.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clickmill._core import Batch, Push, Session, Ticket
    from clickmill.ps.coordinator import Membership
    from clickmill.train.cluster.sender import Sender
    from clickmill.train.cluster.stream import Stream, Taken
    from clickmill.train.cluster.worker import Tools

logger = logging.getLogger("clickmill.train")


class QueuedWorker(Worker):
    """Reads rows with its own session, and leaves pushes to a sender with another one."""

    def __init__(
        self,
        tools: Tools,
        session: Session,
        membership: Membership,
        after_step: Callable[[Batch, float, int], None],
        fence_state: Callable[[], str | None],
        *,
        sender: Sender,
    ) -> None:
        super().__init__(tools, session, membership, after_step, fence_state)
        self._sender = sender
        # What is read beside pushes waits for none of them.
        self._depth = 1

    def close(self) -> None:
        """End the sender; what it has not sent is void, and leased again."""
        self._sender.close()
        counts = self._sender.counts
        logger.info(
            "sender.closed pushes=%d frames=%d longest=%d waits=%d",
            counts.pushes,
            counts.frames,
            counts.longest,
            counts.waits,
        )

    def _step_all(
        self,
        pushes: list[Push],
        streams: Sequence[Stream],
        taken: Sequence[Taken],
        later: Sequence[Ticket] = (),  # noqa: ARG002 - none: nothing is read two batches ahead
    ) -> None:
        with self._tools.stopwatch.measure("push"):
            for push in pushes:
                self._sender.put(push)
        self._pushes += len(pushes)
        if taken:
            self._pull(streams, taken, wants_dense=self._wants_dense(pushes))
            return
        # The end of a unit, or a fence: what is under way must have arrived.
        with self._tools.stopwatch.measure("push"):
            self._step, fence = self._sender.flush()
        self._fence = max(self._fence, fence)
