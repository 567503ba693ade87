"""Running statistics of the dense net, which each rank gathers on its own samples, brought together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from clickmill.train.replica import Replicas

if TYPE_CHECKING:
    from clickmill.nn import Model
    from clickmill.train.collective.channel import Channel


class CollectiveReplicas(Replicas):
    """The dense net of a rank."""

    def __init__(self, model: Model, num_workers: int, channel: Channel) -> None:
        super().__init__(model, num_workers)
        self._channel = channel

    def average_buffers(self) -> None:
        """Also over the ranks, in the same order on each of them."""
        super().average_buffers()
        average_over_ranks(self.model, self._channel)
        self.copy_buffers()


def average_over_ranks(model: torch.nn.Module, channel: Channel) -> None:
    """The mean of the ranks' floats, the maximum of their counts."""
    for _, buffer in model.named_buffers():
        own = buffer.detach().cpu().contiguous()
        flat = own.view(-1).numpy()
        found = np.stack(channel.gather(flat, [len(flat)] * channel.world))
        # The mean of equal numbers may round to another; a fence without batches must change nothing.
        if (found == found[0]).all():
            continue
        merged = found.mean(axis=0, dtype=found.dtype) if own.is_floating_point() else found.max(axis=0)
        buffer.copy_(torch.from_numpy(merged).view(buffer.shape))
