"""The metrics of one stream of scored samples, by name."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np

from clickmill._core import BinaryMetrics, ExactAuc, GroupAuc, RegressionMetrics
from clickmill.errors import ConfigError, FormatError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Keys = NDArray[np.uint64]

logger = logging.getLogger(__name__)

Task = Literal["binary", "regression"]

BINARY_METRICS: Final = (
    "auc",
    "batch_auc",
    "logloss",
    "ne",
    "copc",
    "mae",
    "rmse",
    "actual_ctr",
    "predicted_ctr",
    "bucket_error",
    "mean_q",
    "count",
)
"""Always at hand for a click model: their cost does not grow with the stream."""

REGRESSION_METRICS: Final = ("mae", "rmse", "mean_label", "mean_score", "count")
"""For labels that are any numbers."""

_KEEPING: Final = ("exact_auc", "gauc")
"""For a click model, on request: they keep every score."""

DEFAULT_LIMIT: Final = 50_000_000
"""Samples that `exact_auc` (8 bytes each) and `gauc` (16 bytes each) keep at most."""


class MetricSet:
    """Takes batches of scores and labels; gives numbers, merges, and stores its state exactly.

    `names`: what `compute` gives, in this order; none: all that cost no memory per sample. `thresholds`:
    uniform AUC buckets as in the seeds (4096) in place of the finer default. `window`: batches that
    `batch_auc` looks back. `derived`: numbers of the caller's own, made from those of `names` and given
    after them. `past_limit`: what becomes of a metric that keeps every score when they are more than `limit`:
    `error` stops, `nan` goes on without it. May be updated from several threads.
    """

    def __init__(
        self,
        names: Sequence[str] | None = None,
        *,
        task: Task = "binary",
        thresholds: int | None = None,
        window: int = 20,
        limit: int = DEFAULT_LIMIT,
        past_limit: Literal["error", "nan"] = "error",
        group_weight: Literal["impressions", "clicks", "uniform"] = "impressions",
        derived: Callable[[Mapping[str, float]], Mapping[str, float]] | None = None,
    ) -> None:
        base, extra = (BINARY_METRICS, _KEEPING) if task == "binary" else (REGRESSION_METRICS, ())
        self.names: tuple[str, ...] = tuple(base if names is None else names)
        for name in self.names:
            if name not in base and name not in extra:
                raise ConfigError(f"metric `{name}` is not known for {task} labels; known: {base + extra}")
        self.task: Task = task
        self._derived = derived
        self._past_limit = past_limit
        self._given_up: set[str] = set()
        """Parts that had too many scores to keep."""
        self._parts: dict[str, Any] = {}
        if task == "regression":
            self._parts["regression"] = RegressionMetrics()
        else:
            self._parts["binary"] = BinaryMetrics(thresholds, window)
        if "exact_auc" in self.names:
            self._parts["exact"] = ExactAuc(limit)
        if "gauc" in self.names:
            self._parts["group"] = GroupAuc(group_weight, limit)

    @property
    def needs_groups(self) -> bool:
        """Whether `update` must be given group keys."""
        return "group" in self._parts

    @property
    def count(self) -> int:
        """Samples so far."""
        part = self._parts["regression" if self.task == "regression" else "binary"]
        return int(part.count)

    def update(
        self, scores: Floats, labels: Floats, weights: Floats | None = None, groups: Keys | None = None
    ) -> None:
        """Count one batch; arrays are f32 and only read during the call. A column of a matrix will do.

        Raises DataError, with nothing counted, when a score is NaN or a label is not what the metrics take.
        """
        if groups is None and self.needs_groups:
            raise StateError("`gauc` needs a group key for each sample", hint="give the schema a group slot")
        scores, labels = np.ascontiguousarray(scores), np.ascontiguousarray(labels)
        for name, part in self._parts.items():
            if name in self._given_up:
                continue
            try:
                if name == "group":
                    part.update(groups, scores, labels, weights)
                else:
                    part.update(scores, labels, weights)
            except StateError as error:
                if self._past_limit == "error":
                    raise
                self._give_up(name, error)

    def _give_up(self, name: str, reason: StateError) -> None:
        logger.warning("a metric is left out: %s", reason)
        self._given_up.add(name)
        self._parts[name].reset()

    def update_parts(
        self,
        scores: Sequence[Floats],
        labels: Floats,
        weights: Floats | None = None,
        groups: Keys | None = None,
    ) -> None:
        """Count one batch whose scores come in consecutive parts."""
        whole = scores[0] if len(scores) == 1 else np.concatenate(scores)
        self.update(whole, np.ascontiguousarray(labels), weights, groups)

    def compute(self) -> dict[str, float]:
        """The value of each name; NaN where there is nothing to divide by, AUC 0.5 while a class is empty."""
        values = self._binary_values() if self.task == "binary" else self._parts["regression"].report()
        return self.complete(values)

    def complete(self, values: Mapping[str, float]) -> dict[str, float]:
        """What `compute` gives, from numbers that were counted elsewhere; NaN for those not there."""
        chosen = {name: values.get(name, math.nan) for name in self.names}
        return chosen if self._derived is None else {**chosen, **self._derived(chosen)}

    def _binary_values(self) -> dict[str, float]:
        values: dict[str, float] = self._parts["binary"].report()
        if "batch_auc" in self.names:
            values["batch_auc"] = self._parts["binary"].batch_auc()
        if "exact" in self._parts:
            values["exact_auc"] = math.nan if "exact" in self._given_up else self._parts["exact"].auc()
        if "group" in self._parts:
            is_left_out = "group" in self._given_up
            values["gauc"] = math.nan if is_left_out else self._parts["group"].report()["gauc"]
        return values

    def auc(self) -> float:
        """For the batch line: the bucketed AUC alone."""
        return float(self._parts["binary"].auc())

    def batch_auc(self) -> float:
        """For the batch line: the AUC of the last batches alone."""
        return float(self._parts["binary"].batch_auc())

    def merge(self, other: Self) -> None:
        """Add what `other` has counted, another thread or another trainer."""
        if self._parts.keys() != other._parts.keys():
            raise StateError(f"cannot merge metrics {other.names} into {self.names}")
        self._given_up |= other._given_up
        for name, part in self._parts.items():
            if name in self._given_up:
                continue
            try:
                part.merge(other._parts[name])
            except StateError as error:
                if self._past_limit == "error":
                    raise
                self._give_up(name, error)

    def reset(self) -> None:
        """Forget everything."""
        self._given_up.clear()
        for part in self._parts.values():
            part.reset()

    def state_dict(self) -> dict[str, bytes]:
        """The exact state; `load_state_dict` goes on as if nothing had happened."""
        return {name: part.state() for name, part in self._parts.items()}

    @property
    def given_up(self) -> frozenset[str]:
        """Parts that had too many scores to keep."""
        return frozenset(self._given_up)

    def load_state_dict(self, state: Mapping[str, bytes], given_up: Iterable[str] = ()) -> None:
        """Take the place of the set that gave `state`, which must have had the same metrics."""
        if state.keys() != self._parts.keys():
            raise FormatError(f"state holds {sorted(state)}, this set needs {sorted(self._parts)}")
        self._given_up = set(given_up)
        self._parts = {name: type(part).from_state(state[name]) for name, part in self._parts.items()}
