"""What a net has learnt that is no parameter: running means of batch normalisation and the like.

Every trainer has its own, from the batches that it has seen. They are told at fences, lie in the snapshot by
trainer, and a checkpoint gets the mean of all.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.train.replica import Replicas


def encode_buffers(replicas: Replicas) -> str | None:
    """The buffers of a trainer, merged over its workers; None where the net has none."""
    replicas.average_buffers()
    buffers = dict(replicas.model.named_buffers())
    if not buffers:
        return None
    return json.dumps({name: _pack(buffer) for name, buffer in buffers.items()})


def load_buffers(replicas: Replicas, states: Sequence[str]) -> None:
    """Take the mean of what trainers have told: of floats the mean, of counts the maximum."""
    told = [json.loads(state) for state in states]
    for name, buffer in replicas.model.named_buffers():
        values = [_unpack(each[name], buffer) for each in told if name in each]
        if values:
            stacked = torch.stack(values)
            merged = stacked.mean(dim=0) if buffer.is_floating_point() else stacked.amax(dim=0)
            buffer.copy_(merged)
    replicas.copy_buffers()


def _pack(buffer: torch.Tensor) -> str:
    return base64.b64encode(buffer.contiguous().numpy().tobytes()).decode()


def _unpack(text: str, like: torch.Tensor) -> torch.Tensor:
    values = np.frombuffer(base64.b64decode(text), dtype=like.numpy().dtype).copy()
    return torch.from_numpy(values).reshape(like.shape)
