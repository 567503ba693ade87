"""One worker's copy of the dense net.

Each worker computes on its own copy, so that an update made in one worker's turn never changes the
parameters under another worker's running batch. The newest parameters are those of the worker that
committed last; an update reads them there and writes into the committing worker's own copy.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clickmill.nn import Model

    Array = NDArray[np.float32]


class Replica:
    """A model whose trainable parameters are also visible as flat NumPy arrays, without copies."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        for parameter in self.parameters:
            parameter.data = parameter.data.contiguous()
        self.arrays: list[Array] = [parameter.detach().view(-1).numpy() for parameter in self.parameters]
        self._zeros: dict[int, Array] = {}

    def clone(self) -> Replica:
        """An independent copy with the same values."""
        return Replica(copy.deepcopy(self.model))

    def take_gradients(self) -> list[Array]:
        """Gradients of the last backward in the order of `arrays`, zero where none arrived."""
        gradients = []
        for index, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                gradients.append(self._zeros.setdefault(index, np.zeros(parameter.numel(), np.float32)))
            else:
                gradients.append(parameter.grad.contiguous().view(-1).numpy())
                parameter.grad = None
        return gradients


class Replicas:
    """All workers' copies, and which of them is the newest."""

    def __init__(self, model: Model, num_workers: int) -> None:
        first = Replica(model)
        self.all = [first] + [first.clone() for _ in range(num_workers - 1)]
        self._newest = 0

    def __getitem__(self, worker: int) -> Replica:
        return self.all[worker]

    @property
    def newest(self) -> Replica:
        """The copy that holds all committed updates."""
        return self.all[self._newest]

    def set_newest(self, worker: int) -> None:
        """Note that `worker` has committed last."""
        self._newest = worker

    def align(self) -> None:
        """Make all copies equal at a fence: the newest parameters, and buffers that merge what each saw.

        Workers see different batches, so that running statistics drift apart: floats become their mean,
        counts their maximum.
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
        self._copy_parameters()

    def spread(self) -> None:
        """Give every copy all that the newest has: buffers and frozen parameters too, as after loading."""
        state = self.newest.model.state_dict()
        for replica in self.all:
            if replica is not self.newest:
                replica.model.load_state_dict(state)

    def _copy_parameters(self) -> None:
        newest = self.newest
        for replica in self.all:
            if replica is not newest:
                for target, source in zip(replica.arrays, newest.arrays, strict=True):
                    np.copyto(target, source)
