"""Dropout whose masks depend on the batch and on nothing else.

`torch.nn.Dropout` draws from one generator per process: with several worker threads, or after a resume, the
masks of a batch would depend on who drew before. Here the trainer calls `seed_batch` before each forward
pass, and all dropout layers of that pass draw, in order, from a generator of that thread seeded with it.
"""

from __future__ import annotations

import threading

import torch
from torch.nn import functional

from clickmill.errors import ConfigError


class _ThreadState(threading.local):
    def __init__(self) -> None:
        self.generators: dict[torch.device, torch.Generator] = {}


_state = _ThreadState()


def seed_batch(model: torch.nn.Module, seed: int) -> None:
    """Make the masks of the next forward pass of `model` in this thread a function of `seed`.

    Nothing is drawn, and nothing happens, while the model is in evaluation mode.
    """
    if not model.training:
        return
    device = next((each.device for each in model.parameters()), torch.device("cpu"))
    if device not in _state.generators:
        _state.generators[device] = torch.Generator(device)
    _state.generators[device].manual_seed(seed)


class Dropout(torch.nn.Module):
    """Zeroes elements with probability `p` and scales the others by 1 / (1 - p), while training."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ConfigError(f"dropout is {p}; allowed: 0 to less than 1")
        self.p = p

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`x` itself in evaluation mode; torch's own generator where no batch has been seeded."""
        if not self.training or self.p == 0.0:
            return x
        generator = _state.generators.get(x.device)
        if generator is None:
            return functional.dropout(x, self.p)
        keep = 1.0 - self.p
        mask = torch.empty_like(x).bernoulli_(keep, generator=generator)
        return x * mask.div_(keep)

    def extra_repr(self) -> str:
        """For the printed model."""
        return f"p={self.p}"


def replace_dropout(model: torch.nn.Module) -> int:
    """Put our `Dropout` in the place of each `torch.nn.Dropout` of a user's model; returns how many.

    Other kinds of dropout have no form that depends on the batch alone, and are refused.
    """
    replaced = 0
    for path, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Dropout:
                setattr(parent, name, Dropout(child.p).train(child.training))
                replaced += 1
            elif isinstance(child, torch.nn.modules.dropout._DropoutNd):
                place = f"{path}.{name}" if path else name
                raise ConfigError(
                    f"`{place}` is a torch.nn.{type(child).__name__}, whose masks a resume would change",
                    hint="use clickmill.nn.Dropout",
                )
    return replaced
