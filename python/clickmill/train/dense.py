"""The optimizer of the dense parameters, wherever these are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class DenseOptimizer(Protocol):
    """State and rule of an update; `clickmill._core.DenseOptimizer` is the one of this process's memory."""

    def square_sum(self, parts: Sequence[Sequence[Array]], /) -> float:
        """Sum of the squares of the gradients, each summed over the parts of a batch."""

    def step(
        self,
        parameters: Sequence[Array],
        parts: Sequence[Sequence[Array]],
        learning_rate: float,
        scale: float = 1.0,
        /,
    ) -> None:
        """Move each parameter by the sum of its gradients over the parts of a batch, times `scale`."""

    def state(self) -> tuple[int, list[Array]]:
        """Steps made, and for each parameter its kinds of state, in order."""

    def load_state(self, step: int, states: Sequence[Array], /) -> None:
        """Take the place of the optimizer that gave `state`."""
