from _typeshed import Incomplete
from typing import Any, SupportsIndex, final

__all__ = ["BinaryMetrics", "ExactAuc", "GroupAuc", "RegressionMetrics", "Schema", "exchange_names", "keep_freed_memory", "synth"]

@final
class BinaryMetrics:
    """
    Streaming metrics of probabilities against labels of 0 and 1.
    """
    def __new__(cls, /, thresholds: SupportsIndex | None = None, window: SupportsIndex = 20) -> BinaryMetrics:
        """
        `thresholds`: uniform buckets as in the seeds (4096); none: buckets that are finer near 0 and 1.
        `window`: how many batches `batch_auc` looks back.
        """
    def auc(self, /) -> float:
        """
        AUC since the last reset; 0.5 while a class is empty.
        """
    def batch_auc(self, /) -> float:
        """
        AUC of the last `window` batches; 0.5 while a class is empty.
        """
    @property
    def count(self, /) -> int:
        """
        Samples so far, whatever they weigh.
        """
    @staticmethod
    def from_state(state: bytes) -> BinaryMetrics: ...
    def merge(self, /, other: BinaryMetrics) -> None: ...
    def report(self, /) -> dict[str, float]:
        """
        Everything by name but `batch_auc`; NaN where there is nothing to divide by.
        """
    def reset(self, /) -> None: ...
    def state(self, /) -> bytes:
        """
        The whole state; `from_state` gives an accumulator that goes on exactly where this one stands.
        """
    def update(self, /, scores: Incomplete, labels: Incomplete, weights: Incomplete | None = None) -> None:
        """
        Takes the whole batch, or nothing of it when a value is not allowed.
        """

@final
class ExactAuc:
    """
    AUC over all scores, which it keeps: 8 bytes a sample, `limit` samples at most.
    """
    def __new__(cls, /, limit: SupportsIndex) -> ExactAuc: ...
    def auc(self, /) -> float:
        """
        0.5 while a class is empty.
        """
    @property
    def count(self, /) -> int: ...
    @staticmethod
    def from_state(state: bytes) -> ExactAuc: ...
    def merge(self, /, other: ExactAuc) -> None: ...
    def reset(self, /) -> None: ...
    def state(self, /) -> bytes: ...
    def update(self, /, scores: Incomplete, labels: Incomplete, weights: Incomplete | None = None) -> None: ...

@final
class GroupAuc:
    """
    Mean of the exact AUC inside each group; keeps 16 bytes a sample, `limit` samples at most.
    """
    def __new__(cls, /, weight: str, limit: SupportsIndex) -> GroupAuc:
        """
        `weight`: what a group counts for, `impressions`, `clicks` or `uniform`.
        """
    @property
    def count(self, /) -> int: ...
    @staticmethod
    def from_state(state: bytes) -> GroupAuc: ...
    def merge(self, /, other: GroupAuc) -> None: ...
    def report(self, /) -> dict[str, float]:
        """
        `gauc` (0.5 while no group has both classes), `num_groups` in the mean, `num_skipped` of one class.
        """
    def reset(self, /) -> None: ...
    def state(self, /) -> bytes: ...
    def update(self, /, groups: Incomplete, scores: Incomplete, labels: Incomplete, weights: Incomplete | None = None) -> None: ...

@final
class RegressionMetrics:
    """
    Errors of scores against labels that are any numbers.
    """
    def __new__(cls, /) -> RegressionMetrics: ...
    @property
    def count(self, /) -> int: ...
    @staticmethod
    def from_state(state: bytes) -> RegressionMetrics: ...
    def merge(self, /, other: RegressionMetrics) -> None: ...
    def report(self, /) -> dict[str, float]:
        """
        NaN while there is no sample.
        """
    def reset(self, /) -> None: ...
    def state(self, /) -> bytes: ...
    def update(self, /, scores: Incomplete, labels: Incomplete, weights: Incomplete | None = None) -> None: ...

@final
class Schema:
    """
    What a sample means: slots, tables and transforms, checked.
    """
    def __new__(cls, /, json: str) -> Schema: ...
    def groups(self, /) -> list[tuple[list[int], list[int]]]:
        """
        Per group of sparse slots: positions of its tables, positions of its slots.
        """
    @property
    def num_dense(self, /) -> int:
        """
        Total width of the dense slots.
        """
    def to_json(self, /) -> str: ...

def exchange_names(left: str, right: str) -> None:
    """
    Swap two names of one file system in one step: neither is ever absent.
    """

def keep_freed_memory() -> bool:
    """
    Keep freed activations in the process instead of mapping them anew each step.

    By default glibc gives blocks above 128 KiB back to the kernel when they are freed; a training step
    then spends a good part of its time in page faults. Returns whether the settings were taken.
    """

def synth(config_json: str, progress: Any | None = None) -> str:
    """
    Write a made-up Criteo-like log with a known best AUC; returns the report as JSON.

    `progress(rows_done, rows_total)` is called after each block of rows; what it raises stops the work,
    leaves no file behind and is raised here.
    """
