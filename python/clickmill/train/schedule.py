"""Learning-rate schedules: a factor on the base learning rate, by step and pass.

A schedule is a pure function of step and pass, except `Plateau`, which also remembers the metric; its memory
is part of a checkpoint, so that a resumed run goes on with the same factor.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any


class Schedule(ABC):
    """A factor on the base learning rate."""

    @abstractmethod
    def factor(self, step: int, pass_number: int) -> float:
        """Factor for the update number `step` of the run, in pass `pass_number`; both count from 0."""

    def observe(self, metric: float) -> bool:
        """Take the metric of a finished pass; True if the factor changed."""
        del metric
        return False

    def state(self) -> dict[str, Any]:
        """What must be stored to go on; empty for a pure function of the step."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        del state


@dataclass(frozen=True)
class Constant(Schedule):
    """Factor 1 for ever."""

    def factor(self, step: int, pass_number: int) -> float:
        del step, pass_number
        return 1.0


@dataclass(frozen=True)
class Step(Schedule):
    """Multiply by `gamma` every `every` steps, or passes."""

    every: int
    gamma: float
    by_pass: bool = False

    def factor(self, step: int, pass_number: int) -> float:
        return float(self.gamma ** ((pass_number if self.by_pass else step) // self.every))


@dataclass(frozen=True)
class Exponential(Schedule):
    """`gamma ** (step / every)`, smooth; by pass: a step down at each pass."""

    every: int
    gamma: float
    by_pass: bool = False

    def factor(self, step: int, pass_number: int) -> float:
        return float(self.gamma ** ((pass_number if self.by_pass else step) / self.every))


@dataclass(frozen=True)
class Cosine(Schedule):
    """From 1 to `minimum` along half a cosine over `total` steps, then `minimum`."""

    total: int
    minimum: float = 0.0

    def factor(self, step: int, pass_number: int) -> float:
        del pass_number
        share = min(step / self.total, 1.0)
        return self.minimum + (1.0 - self.minimum) * (1.0 + math.cos(math.pi * share)) / 2.0


@dataclass(frozen=True)
class LinearWarmup(Schedule):
    """Rise from 0 to 1 over `steps`, then follow `then`, whose own step 0 is the end of the rise."""

    steps: int
    then: Schedule

    def factor(self, step: int, pass_number: int) -> float:
        if step < self.steps:
            return (step + 1) / self.steps
        return self.then.factor(step - self.steps, pass_number)

    def observe(self, metric: float) -> bool:
        return self.then.observe(metric)

    def state(self) -> dict[str, Any]:
        return self.then.state()

    def load_state(self, state: dict[str, Any]) -> None:
        self.then.load_state(state)


class Plateau(Schedule):
    """Forgive `patience` passes in a row without improvement, then multiply by `gamma`."""

    def __init__(
        self,
        *,
        gamma: float = 0.1,
        patience: int = 1,
        min_delta: float = 0.0,
        minimum: float = 0.0,
        higher_is_better: bool = True,
    ) -> None:
        self._gamma = gamma
        self._patience = patience
        self._min_delta = min_delta
        self._minimum = minimum
        self._sign = 1.0 if higher_is_better else -1.0
        self._factor = 1.0
        self._best: float | None = None
        self._stale = 0

    def factor(self, step: int, pass_number: int) -> float:
        del step, pass_number
        return self._factor

    def observe(self, metric: float) -> bool:
        if self._best is None or self._sign * (metric - self._best) > self._min_delta:
            self._best = metric
            self._stale = 0
            return False
        self._stale += 1
        if self._stale <= self._patience:
            return False
        self._stale = 0
        lowered = max(self._factor * self._gamma, self._minimum)
        has_changed = lowered != self._factor
        self._factor = lowered
        return has_changed

    def state(self) -> dict[str, Any]:
        return {"factor": self._factor, "best": self._best, "stale": self._stale}

    def load_state(self, state: dict[str, Any]) -> None:
        self._factor = state["factor"]
        self._best = state["best"]
        self._stale = state["stale"]
