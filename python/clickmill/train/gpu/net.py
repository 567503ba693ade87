"""The dense net in the memory of a card: all its parameters in one piece, and all their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from clickmill.train.replica import Replica, Replicas

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clickmill.nn import Model

    Array = NDArray[np.float32]


class DeviceReplicas(Replicas):
    """One net, whatever the number of workers: they prepare its input, the card computes.

    Its parameters and gradients are views of `flat` and `gradient`, so that an update is a few operations
    and a sum over ranks one message.
    """

    def __init__(self, model: Model, device: torch.device) -> None:
        model.to(device)
        self.device = device
        self.all = [Replica(model)]
        self.arrays = []
        """Nothing is in the memory of the host."""
        self.merge = None
        parameters = self.all[0].parameters
        self.sizes = [parameter.numel() for parameter in parameters]
        with torch.no_grad():
            self.flat = torch.cat([parameter.reshape(-1) for parameter in parameters])
            self.gradient = torch.zeros_like(self.flat)
            values, gradients = torch.split(self.flat, self.sizes), torch.split(self.gradient, self.sizes)
            for parameter, value, gradient in zip(parameters, values, gradients, strict=True):
                parameter.data = value.view(parameter.shape)
                parameter.grad = gradient.view(parameter.shape)

    def is_finite(self) -> bool:
        return bool(self.flat.isfinite().all())

    def copies(self) -> list[Array]:
        flat: Array = self.flat.clone().cpu().numpy()
        return np.split(flat, np.cumsum(self.sizes)[:-1])
