from __future__ import annotations

from collections.abc import Iterator

import pytest

from clickmill.kube.client import Cluster

from .stand_in import StandIn, stand_in


@pytest.fixture
def state() -> Iterator[StandIn]:
    """What the cluster holds."""
    with stand_in() as started:
        yield started


@pytest.fixture
def cluster(state: StandIn) -> Iterator[Cluster]:
    """The cluster as our side sees it."""
    with state.cluster() as opened:
        yield opened
