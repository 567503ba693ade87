"""Optimizers of dense parameters on a card, on one flat tensor: the rules of `clickmill._core`.

Their state has the same form, so that a run may move between processor and card.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clickmill.train.gpu.net import DeviceReplicas

    Array = NDArray[np.float32]


class DeviceOptimizer:
    """State and rule of the updates of a net; gradients are taken where the net has them."""

    def __init__(self, config_json: str, net: DeviceReplicas) -> None:
        rule: dict[str, Any] = json.loads(config_json)
        self._kind: str = rule.pop("kind")
        self._rule: dict[str, float] = rule
        self._net = net
        self._step = 0
        is_plain = self._kind == "sgd" and rule["momentum"] == 0.0
        count = 0 if is_plain else 2 if self._kind in {"adam", "adam_w"} else 1
        first = rule.get("initial_accumulator", 0.0)
        self._states = [torch.full_like(net.flat, first) for _ in range(count)]

    def square_sum(self, parts: Sequence[Sequence[Array]], /) -> float:
        """Of the gradients that the net has."""
        del parts
        return float(self._net.gradient.double().square().sum())

    @torch.no_grad()
    def step(
        self,
        parameters: Sequence[Array],
        parts: Sequence[Sequence[Array]],
        learning_rate: float,
        scale: float = 1.0,
        /,
    ) -> None:
        """Move the parameters by the gradients that the net has, times `scale`."""
        del parameters, parts
        self._step += 1
        flat, rule = self._net.flat, self._rule
        gradient = self._net.gradient
        if scale != 1.0:
            gradient = gradient * scale
        decay = rule["weight_decay"]
        if self._kind == "adam_w":
            flat.mul_(1.0 - learning_rate * decay)
        elif decay > 0.0:
            gradient = gradient + flat * decay
        match self._kind:
            case "adam" | "adam_w":
                self._adam(gradient, learning_rate)
            case "adagrad":
                total = self._states[0].addcmul_(gradient, gradient)
                flat.addcdiv_(gradient, total.sqrt().add_(rule["eps"]), value=-learning_rate)
            case "rms_prop":
                mean = self._states[0].mul_(rule["alpha"])
                mean.addcmul_(gradient, gradient, value=1.0 - rule["alpha"])
                flat.addcdiv_(gradient, mean.sqrt().add_(rule["eps"]), value=-learning_rate)
            case _:
                if self._states:
                    gradient = self._states[0].mul_(rule["momentum"]).add_(gradient)
                flat.add_(gradient, alpha=-learning_rate)

    def _adam(self, gradient: torch.Tensor, learning_rate: float) -> None:
        rule = self._rule
        first, second = self._states
        first.lerp_(gradient, 1.0 - rule["beta1"])
        second.mul_(rule["beta2"]).addcmul_(gradient, gradient, value=1.0 - rule["beta2"])
        root = float((1.0 - rule["beta2"] ** self._step) ** -0.5)
        size = learning_rate / (1.0 - rule["beta1"] ** self._step)
        self._net.flat.addcdiv_(first, second.sqrt().mul_(root).add_(rule["eps"]), value=-size)

    def state(self) -> tuple[int, list[Array]]:
        """Steps made, and for each parameter its kinds of state, in order."""
        ends = np.cumsum(self._net.sizes)[:-1]
        kinds = [np.split(state.clone().cpu().numpy(), ends) for state in self._states]
        return self._step, [kind[index] for index in range(len(self._net.sizes)) for kind in kinds]

    def load_state(self, step: int, states: Sequence[Array], /) -> None:
        """Take the place of the optimizer, of a processor or of a card, that gave `state`."""
        count = len(self._states)
        if len(states) != count * len(self._net.sizes):
            raise ValueError(f"{len(states)} arrays of state for {len(self._net.sizes)} parameters")
        self._step = step
        for kind, state in enumerate(self._states):
            flat = np.concatenate([each.reshape(-1) for each in states[kind::count]])
            state.copy_(torch.from_numpy(flat))
