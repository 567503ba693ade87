"""Running statistics of the dense net, which each rank gathers on its own samples, brought together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from clickmill.train.collective.channel import Channel


def average_buffers(model: torch.nn.Module, channel: Channel) -> None:
    """The mean of the ranks' floats, the maximum of their counts, with the same bits on each of them."""
    for _, buffer in model.named_buffers():
        own = buffer.detach().cpu().contiguous()
        flat = own.view(-1).numpy()
        found = np.stack(channel.gather(flat, [len(flat)] * channel.world))
        # The mean of equal numbers may round to another; a fence without batches must change nothing.
        if (found == found[0]).all():
            continue
        merged = found.mean(axis=0, dtype=found.dtype) if own.is_floating_point() else found.max(axis=0)
        buffer.copy_(torch.from_numpy(merged).view(buffer.shape))
