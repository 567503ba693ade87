"""What a run tells those who watch it: log, journal, progress bar, TensorBoard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class RunStart:
    """A run begins or goes on."""

    model: str
    num_parameters: int
    num_workers: int
    passes: int
    resumed_from: Path | None
    changes: tuple[str, ...] = ()
    """What is configured otherwise than when the run was stopped, and changes its numbers."""


@dataclass(frozen=True)
class EpochStart:
    """A cluster goes on, from a snapshot or with other servers; what was told of later steps is void."""

    epoch: int
    step: int


@dataclass(frozen=True)
class Interval:
    """Every `print_interval` batches."""

    pass_number: int
    batch: int
    step: int
    samples: int
    loss: float
    learning_rate: float
    metrics: dict[str, float]
    samples_per_second: float
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds by stage since the interval before."""


@dataclass(frozen=True)
class PassEnd:
    """A pass is over; `validation` is empty where there is no validation data."""

    pass_number: int
    step: int
    samples: int
    seconds: float
    train: dict[str, float]
    validation: dict[str, float]
    bad_lines: int
    table_rows: dict[str, int]
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds by stage since the last interval."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint is durable."""

    folder: Path
    pass_number: int
    batch: int
    step: int
    is_full: bool
    seconds: float | None
    """None where it was written before this process resumed the run."""


class Observer:
    """Hears of everything; override what matters. Called in turn, so it must be quick."""

    def run_start(self, event: RunStart) -> None:
        """Before the first batch."""

    def epoch_start(self, event: EpochStart) -> None:
        """Before the first batch of a life of a cluster."""

    def pass_start(self, pass_number: int, total_bytes: int) -> None:
        """Before the first batch of a pass."""

    def advance(self, samples: int, bytes_done: int) -> None:
        """After every batch."""

    def interval(self, event: Interval) -> None:
        """Every `print_interval` batches."""

    def pass_end(self, event: PassEnd) -> None:
        """After the validation of a pass."""

    def saved(self, event: Saved) -> None:
        """After a checkpoint."""

    def note(self, text: str) -> None:
        """Something that a person should know: early stopping, a lower learning rate, evicted rows."""

    def close(self) -> None:
        """Let go of files and the terminal; also after a failure."""
