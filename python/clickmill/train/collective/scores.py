"""Metrics over the samples of all ranks: what one process would count over the same scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from clickmill.metrics import MetricSet
    from clickmill.train.collective.channel import Channel

    Floats = NDArray[np.float32]
    Keys = NDArray[np.uint64]


class RoundMetrics:
    """Metrics of training: each round counts as one batch, in the order of the ranks, on every rank.

    So whatever a rank decides by them all ranks decide alike.
    """

    def __init__(self, metrics: MetricSet, channel: Channel, *, has_weights: bool) -> None:
        self._metrics = metrics
        self._channel = channel
        self._has_weights = has_weights

    def update_parts(
        self,
        scores: Sequence[Floats],
        labels: Floats,
        weights: Floats | None = None,
        groups: Keys | None = None,
    ) -> None:
        """Count the round of which this rank scored these samples."""
        del groups  # metrics of training keep no scores
        none = np.empty(0, np.float32)
        columns = [np.concatenate([none, *scores]), np.ascontiguousarray(labels)]
        if self._has_weights:
            columns.append(none if weights is None else weights)
        counts = self._channel.gather_numbers([len(labels)])[:, 0].astype(int).tolist()
        width = len(columns)
        found = self._channel.gather(np.concatenate(columns), [count * width for count in counts])
        parts = [part.reshape(width, -1) for part in found]
        joint = [np.concatenate([part[column] for part in parts]) for column in range(width)]
        self._metrics.update(joint[0], joint[1], joint[2] if self._has_weights else None)


def merged(metrics: MetricSet, make: Callable[[], MetricSet], channel: Channel) -> MetricSet:
    """What all ranks have counted together; `make` gives an empty set of the same metrics."""
    found = {name: channel.gather_bytes(state) for name, state in metrics.state_dict().items()}
    given_up: list[list[str]] = channel.gather_json(sorted(metrics.given_up))
    total = make()
    for rank in range(channel.world):
        other = make()
        other.load_state_dict({name: states[rank] for name, states in found.items()}, given_up[rank])
        total.merge(other)
    return total
