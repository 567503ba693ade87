"""Optimizers: of the dense parameters (`optimizer`) and of the tables (`sparse_optimizer`).

`class` is written as the user knows it; case and `_` do not matter (`Adam`, `adam`, `row_wise_adagrad`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from clickmill._section import Fraction, NonNegativeFloat32, Number, PositiveFloat32, Section

Beta = Annotated[Fraction, Field(lt=1.0)]


class Optimizer(Section):
    """What all optimizers share."""

    learning_rate: PositiveFloat32 = 0.001
    """Step size, before the schedule."""
    strategy: Literal["async", "sync", "half_async", "geo"] | None = None
    """Read for files of older systems; `distribute_strategy` of the runner decides."""


class SGD(Optimizer):
    """Stochastic gradient descent."""

    class_name: Literal["SGD"] = Field(default="SGD", alias="class")
    """Names the optimizer."""
    momentum: Beta = 0.0
    """Dense parameters only."""


class Adam(Optimizer):
    """Adam."""

    class_name: Literal["Adam"] = Field(default="Adam", alias="class")
    """Names the optimizer."""
    beta1: Beta = 0.9
    """Decay of the first moment."""
    beta2: Beta = 0.999
    """Decay of the second moment."""
    epsilon: PositiveFloat32 = 1e-8
    """Added to the root of the second moment."""
    lazy_mode: bool = True
    """Tables: only touched rows decay. `false`: a row catches up on the steps that it missed."""


class AdamW(Adam):
    """Adam with decoupled weight decay; dense parameters only."""

    class_name: Literal["AdamW"] = Field(default="AdamW", alias="class")  # type: ignore[assignment]
    """Names the optimizer."""
    weight_decay: NonNegativeFloat32 = 0.01
    """Share of a weight that is taken off per step, times the learning rate."""


class Adagrad(Optimizer):
    """Adagrad, an accumulator for each element."""

    class_name: Literal["Adagrad"] = Field(default="Adagrad", alias="class")
    """Names the optimizer."""
    initial_accumulator: NonNegativeFloat32 = 0.0
    """Start of the sum of squares."""
    epsilon: PositiveFloat32 = 1e-10
    """Added to the root of the sum of squares."""


class RowWiseAdagrad(Optimizer):
    """Adagrad with one accumulator for each row: 4 bytes of state instead of 4 x dim. Tables only."""

    class_name: Literal["RowWiseAdagrad"] = Field(default="RowWiseAdagrad", alias="class")
    """Names the optimizer."""
    initial_accumulator: NonNegativeFloat32 = 0.0
    """Start of the sum of squares."""
    epsilon: PositiveFloat32 = 1e-10
    """Added to the root of the sum of squares."""


class RMSProp(Optimizer):
    """RMSProp; dense parameters only."""

    class_name: Literal["RMSProp"] = Field(default="RMSProp", alias="class")
    """Names the optimizer."""
    rho: Beta = 0.99
    """Decay of the mean of squares."""
    epsilon: PositiveFloat32 = 1e-8
    """Added to the root of the mean of squares."""


class FTRL(Optimizer):
    """Tables only. Follow the regularised leader, the usual choice for linear models."""

    class_name: Literal["FTRL"] = Field(default="FTRL", alias="class")
    """Names the optimizer."""
    learning_rate: PositiveFloat32 = 0.05
    """Step size (alpha)."""
    beta: NonNegativeFloat32 = 1.0
    """Added to the root of the sum of squares."""
    l1: NonNegativeFloat32 = 0.0
    """Rows below it stay at exactly zero."""
    l2: NonNegativeFloat32 = 0.0
    """Pull towards zero."""
    learning_rate_power: Annotated[Number, Field(ge=-1.0, le=0.0)] = -0.5
    """Exponent of the sum of squares; -0.5 is the root."""
    initial_accumulator: NonNegativeFloat32 = 0.0
    """Start of the sum of squares."""


_SPELLINGS = {
    name.lower(): name for name in ("SGD", "Adam", "AdamW", "Adagrad", "RowWiseAdagrad", "RMSProp", "FTRL")
}


def _spell_class(value: Any) -> Any:
    if isinstance(value, str):
        value = {"class": value}
    if not isinstance(value, dict) or not isinstance(value.get("class"), str):
        return value
    plain = value["class"].replace("_", "").replace("-", "").lower()
    return {**value, "class": _SPELLINGS.get(plain, value["class"])}


_Spelling = BeforeValidator(_spell_class)
DenseOptimizer = Annotated[
    SGD | Adam | AdamW | Adagrad | RMSProp, Field(discriminator="class_name"), _Spelling
]
SparseOptimizer = Annotated[
    SGD | Adam | Adagrad | RowWiseAdagrad | FTRL, Field(discriminator="class_name"), _Spelling
]


def sparse_counterpart(dense: DenseOptimizer) -> SparseOptimizer:
    """The table optimizer that goes with a dense one: the same, as far as tables have it."""
    if isinstance(dense, AdamW):
        return Adam(
            learning_rate=dense.learning_rate, beta1=dense.beta1, beta2=dense.beta2, epsilon=dense.epsilon
        )
    if isinstance(dense, RMSProp):
        return RowWiseAdagrad(learning_rate=dense.learning_rate)
    if isinstance(dense, SGD) and dense.momentum:
        return SGD(learning_rate=dense.learning_rate)
    return dense
