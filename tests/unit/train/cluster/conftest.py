from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from tests.unit.train.cluster.servers import Servers, Watched
from tests.unit.train.conftest import small_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(name="start_servers")
def _start_servers(tmp_path: Path) -> Iterator[Callable[..., Servers]]:
    """Starts servers; all end with the test."""
    running: list[Servers] = []

    def start(count: int = 1, run: str = "") -> Servers:
        # A run of its own: snapshots of another one would be gone on from.
        running.append(Servers(tmp_path / (run or f"run-{len(running)}") / "snapshots", count))
        return running[-1]

    yield start
    for servers in running:
        servers.stop()


@pytest.fixture(name="train")
def _train(workplace: Path, start_servers: Callable[..., Servers]) -> Callable[..., Watched]:
    """Trains alone with servers of its own, to the end; the trainer, which can be looked at."""

    numbers = itertools.count()

    def train(*overrides: str, num_servers: int = 1) -> Watched:
        run = f"cluster-{next(numbers)}"
        config = cluster_config(f"runner.0.output_path={run}", *overrides)
        trainer = Watched(config, start_servers(num_servers, run))
        trainer.summary = trainer.run()
        return trainer

    return train


def cluster_config(*overrides: str):
    """The small run, one pass in the order of its file, in one piece."""
    return small_config(
        "runner.0.epochs=1",
        "runner.0.save_checkpoint_interval=100",
        "runner.0.cluster.lease_bytes=1000000000",
        "dataset.0.shuffle.kind=none",
        *overrides,
    )
