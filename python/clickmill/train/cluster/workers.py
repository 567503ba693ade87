"""Which worker a strategy wants, and which knobs mean nothing to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clickmill.config.cluster import Communicator
from clickmill.train.cluster.apart import ApartWorker
from clickmill.train.cluster.geo import GeoSettings, GeoWorker
from clickmill.train.cluster.queued import QueuedWorker
from clickmill.train.cluster.sender import Sender
from clickmill.train.cluster.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clickmill._core import Batch, Session
    from clickmill.config import RunnerConfig
    from clickmill.ps.coordinator import Membership
    from clickmill.train.cluster.worker import Tools

_WITH_LANES = ("sync", "hybrid")
_OF_QUEUES = ("send_queue_size", "max_merge_var_num", "is_sgd_optimizer")


def knobs_without_effect(strategy: str, communicator: Communicator) -> list[str]:
    """Knobs that were turned and that the strategy pays no regard to."""
    deaf: set[str] = set()
    if strategy != "async":
        deaf.update(_OF_QUEUES)
    if strategy in (*_WITH_LANES, "geo"):
        # Rounds need the same parameters everywhere; copies are exchanged whole.
        deaf.add("max_send_grad_num_before_recv")
    if strategy in _WITH_LANES:
        # Without its part a round never ends.
        deaf.add("fake_rpc")
    default = Communicator()
    return sorted(name for name in deaf if getattr(communicator, name) != getattr(default, name))


def make_worker(
    runner: RunnerConfig,
    job: Mapping[str, Any],
    *,
    tools: Tools,
    open_session: Callable[[], Session],
    membership: Membership,
    after_step: Callable[[Batch, float, int], None],
    fence_state: Callable[[], str | None],
) -> Worker:
    """A worker for one epoch; `open_session` opens one more session with all servers."""
    strategy, knobs = runner.distribute_strategy, runner.communicator
    session = open_session()
    basics = (tools, session, membership, after_step, fence_state)
    if knobs.fake_rpc and strategy not in _WITH_LANES:
        return ApartWorker(*basics, sending=session, settings=_geo_settings(runner, job))
    if strategy == "geo":
        return GeoWorker(*basics, sending=open_session(), settings=_geo_settings(runner, job))
    if strategy == "async" and knobs.send_queue_size > 1:
        sender = Sender(
            open_session(),
            size=knobs.send_queue_size,
            max_merged=knobs.max_merge_var_num,
            is_average=not knobs.is_sgd_optimizer,
        )
        return QueuedWorker(*basics, sender=sender)
    return Worker(*basics)


def _geo_settings(runner: RunnerConfig, job: Mapping[str, Any]) -> GeoSettings:
    return GeoSettings(
        optimizer_json=json.dumps(job["dense"]["rule"]),
        geo_step=runner.cluster.geo_step,
        trainers=job["trainers"],
    )
