"""One worker's view of the dense net.

All workers read the same parameters, which change only between batches; each has gradients and buffers
of its own, so that they can compute on parts of one batch at the same time.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from clickmill.nn import Model

    Array = NDArray[np.float32]


class Replica:
    """A model with its gradients."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._zeros: dict[int, Array] = {}

    def take_gradients(self) -> list[Array]:
        """Gradients of the last backward, flat, one for each parameter, zero where none arrived."""
        gradients = []
        for index, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                gradients.append(self._zeros.setdefault(index, np.zeros(parameter.numel(), np.float32)))
            else:
                gradients.append(parameter.grad.contiguous().view(-1).numpy())
                parameter.grad = None
        return gradients


class Replicas:
    """The dense net and a replica of it for each worker."""

    def __init__(self, model: Model, num_workers: int) -> None:
        for parameter in model.parameters():
            parameter.data = parameter.data.contiguous()
        self.all = [Replica(model)]
        for _ in range(num_workers - 1):
            twin = copy.deepcopy(model)
            for own, shared in zip(twin.parameters(), model.parameters(), strict=True):
                own.data = shared.data
            self.all.append(Replica(twin))
        self.arrays: list[Array] = [
            parameter.detach().view(-1).numpy() for parameter in self.all[0].parameters
        ]
        """The trainable parameters, flat, without copies."""
        self.merge: Callable[[Model], None] | None = None
        """Brings the buffers of the net together with those of other processes."""

    def __getitem__(self, worker: int) -> Replica:
        return self.all[worker]

    @property
    def model(self) -> Model:
        """The net itself: what is saved, evaluated and loaded into."""
        return self.all[0].model

    def average_buffers(self) -> None:
        """Merge what the replicas saw, only between batches: the mean of floats, the maximum of counts.

        Each worker sees a part of every batch, so running statistics drift apart.
        """
        buffers = [dict(replica.model.named_buffers()) for replica in self.all]
        for name in buffers[0]:
            values = torch.stack([each[name] for each in buffers])
            # The mean of equal numbers may round to another; a fence without batches must change nothing.
            if (values == values[0]).all():
                continue
            merged = values.mean(dim=0) if values.is_floating_point() else values.amax(dim=0)
            for each in buffers:
                each[name].copy_(merged)
        if self.merge is not None:
            self.merge(self.model)
            self.copy_buffers()

    def is_finite(self) -> bool:
        """Whether all parameters are numbers."""
        return all(bool(np.isfinite(array).all()) for array in self.arrays)

    def copies(self) -> list[Array]:
        """The trainable parameters as they are now, flat."""
        return [array.copy() for array in self.arrays]

    def copy_buffers(self) -> None:
        """Give all replicas the buffers of the net itself, as after loading them."""
        for replica in self.all[1:]:
            own = dict(replica.model.named_buffers())
            for name, buffer in self.model.named_buffers():
                own[name].copy_(buffer)
