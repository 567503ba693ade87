"""Early stopping: when further passes do not pay."""

from __future__ import annotations

from typing import Any


class EarlyStopping:
    """Forgives `patience` passes in a row without an improvement of more than `min_delta`, then says stop."""

    def __init__(self, *, patience: int, min_delta: float = 0.0, higher_is_better: bool = True) -> None:
        self._patience = patience
        self._min_delta = min_delta
        self._sign = 1.0 if higher_is_better else -1.0
        self._best: float | None = None
        self._stale = 0

    def observe(self, metric: float) -> bool:
        """Take the metric of a finished pass; True if training should stop."""
        if self._best is None or self._sign * (metric - self._best) > self._min_delta:
            self._best = metric
            self._stale = 0
        else:
            self._stale += 1
        return self._stale > self._patience

    def state(self) -> dict[str, Any]:
        """Memory for a checkpoint."""
        return {"best": self._best, "stale": self._stale}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        self._best = state["best"]
        self._stale = state["stale"]
