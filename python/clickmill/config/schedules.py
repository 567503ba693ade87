"""Learning-rate schedules: a factor on the learning rate of every optimizer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from clickmill._section import Count, Fraction, NonNegativeNumber, PositiveCount, Section


class Schedule(Section):
    """What all schedules share."""

    warmup_batches: Count = 0
    """The factor rises linearly from 0 to 1 over so many batches first."""


class ConstantSchedule(Schedule):
    """The learning rate stays as it is."""

    class_name: Literal["constant"] = Field(default="constant", alias="class")
    """Names the schedule."""


class LinearWarmupSchedule(Schedule):
    """The learning rate rises for `warmup_batches`, then stays."""

    class_name: Literal["linear_warmup"] = Field(alias="class")
    """Names the schedule."""
    warmup_batches: PositiveCount
    """Batches until the full learning rate."""


class StepSchedule(Schedule):
    """The learning rate is multiplied by `factor` every `interval`."""

    class_name: Literal["step"] = Field(alias="class")
    """Names the schedule."""
    interval: PositiveCount
    """Batches or passes, as `unit` says."""
    factor: Fraction = 0.1
    """Multiplier."""
    unit: Literal["batch", "pass"] = "pass"
    """What `interval` counts."""


class ExponentialSchedule(Schedule):
    """The learning rate is multiplied by `factor` over each `interval`, smoothly."""

    class_name: Literal["exponential"] = Field(alias="class")
    """Names the schedule."""
    factor: Fraction
    """Multiplier over one interval."""
    interval: PositiveCount = 1
    """Batches or passes, as `unit` says."""
    unit: Literal["batch", "pass"] = "pass"
    """What `interval` counts."""


class CosineSchedule(Schedule):
    """The factor falls from 1 to `minimum` along half a cosine."""

    class_name: Literal["cosine"] = Field(alias="class")
    """Names the schedule."""
    total_batches: PositiveCount
    """Batches until the minimum, warm-up included; it stays there afterwards."""
    minimum: Fraction = 0.0
    """Lowest factor."""


class PlateauSchedule(Schedule):
    """The learning rate is multiplied by `factor` when a metric has stopped getting better."""

    class_name: Literal["plateau"] = Field(alias="class")
    """Names the schedule."""
    metric: str = "auc"
    """Metric of the evaluation after each pass."""
    factor: Fraction = 0.5
    """Multiplier."""
    patience: Count = 1
    """Passes without improvement that are forgiven."""
    min_delta: NonNegativeNumber = 1e-4
    """Smallest change that counts as improvement."""
    minimum: Fraction = 0.0
    """Lowest factor."""


def _bare_class(value: Any) -> Any:
    return {"class": value} if isinstance(value, str) else value


LearningRateSchedule = Annotated[
    ConstantSchedule
    | LinearWarmupSchedule
    | StepSchedule
    | ExponentialSchedule
    | CosineSchedule
    | PlateauSchedule,
    Field(discriminator="class_name"),
    BeforeValidator(_bare_class),
]
