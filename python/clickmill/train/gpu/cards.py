"""Which card a process computes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from clickmill.errors import ConfigError

if TYPE_CHECKING:
    from clickmill.config import RunnerConfig


def card_of(runner: RunnerConfig, local_rank: int) -> torch.device | None:
    """The card of a process among `selected_gpus`; None where the runner computes on the processor.

    From now on torch takes it wherever none is named.
    """
    if runner.device != "gpu":
        return None
    number = runner.cards[local_rank % len(runner.cards)]
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if number >= found:
        there = "torch sees none" if found == 0 else f"torch sees {found}, counted from 0"
        raise ConfigError(
            f"runner `{runner.name}`: `device: gpu` with card {number}, but {there}",
            hint="choose others with `selected_gpus`, or compute with `device: cpu`",
        )
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    return device
