"""From the configuration's words to those of the core: tables, optimizers, schedules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from clickmill.config.native import table_config
from clickmill.config.optimizers import SGD, Adagrad, Adam, AdamW, RMSProp, SparseOptimizer
from clickmill.config.schedules import (
    CosineSchedule,
    ExponentialSchedule,
    PlateauSchedule,
    StepSchedule,
)
from clickmill.errors import ConfigError
from clickmill.ps.tables import TableSet
from clickmill.schema import TableSpec
from clickmill.train.compute import ComputeOptions
from clickmill.train.schedule import Constant, Cosine, Exponential, LinearWarmup, Plateau, Schedule, Step
from clickmill.train.stopping import EarlyStopping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clickmill._core import Schema
    from clickmill.config.hyper import HyperParameters
    from clickmill.config.optimizers import DenseOptimizer
    from clickmill.config.runner import RunnerConfig
    from clickmill.config.schedules import LearningRateSchedule
    from clickmill.nn import TableRequest

_SPARSE: TypeAdapter[SparseOptimizer] = TypeAdapter(SparseOptimizer)

LOWER_IS_BETTER = frozenset({"logloss", "ne", "mae", "rmse", "bucket_error", "loss"})


def is_higher_better(metric: str) -> bool:
    """Whether a larger value of the metric is the better one."""
    return metric not in LOWER_IS_BETTER


def dense_optimizer_json(optimizer: DenseOptimizer, l2: float) -> str:
    """JSON for `_core.DenseOptimizer`."""
    settings: dict[str, Any]
    match optimizer:
        case AdamW():
            settings = {"kind": "adam_w", **_adam(optimizer), "weight_decay": optimizer.weight_decay}
        case Adam():
            settings = {"kind": "adam", **_adam(optimizer), "weight_decay": l2}
        case SGD():
            settings = {"kind": "sgd", "momentum": optimizer.momentum, "weight_decay": l2}
        case Adagrad():
            settings = {"kind": "adagrad", **_adagrad(optimizer), "weight_decay": l2}
        case RMSProp():
            settings = {
                "kind": "rms_prop",
                "alpha": optimizer.rho,
                "eps": optimizer.epsilon,
                "weight_decay": l2,
            }
    return json.dumps(settings)


def table_optimizer(
    name: str, hyper: HyperParameters, suggested: Mapping[str, Any] | None
) -> SparseOptimizer:
    """The table's own optimizer, else a named one for all tables, else what the model suggests."""
    overrides = hyper.tables.get(name)
    if overrides is not None and overrides.optimizer is not None:
        return overrides.optimizer
    if hyper.sparse_optimizer is None and suggested is not None:
        return _suggested(name, suggested)
    return hyper.table_optimizer


def _suggested(name: str, settings: Mapping[str, Any]) -> SparseOptimizer:
    """What a model writes in its `tables`; nothing has looked at it before."""
    try:
        return _SPARSE.validate_python(dict(settings))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()
        )
        raise ConfigError(
            f"the optimizer that the model wants for table `{name}` is not valid: {problems}",
            hint="mend `tables` of the model, or set `sparse_optimizer`",
        ) from error


def make_tables(
    schema: Schema,
    hyper: HyperParameters,
    requests: Sequence[TableRequest],
    *,
    share: tuple[int, int] | None = None,
) -> TableSet:
    """New, empty tables in this process, as the schema, the configuration and the model want them.

    `share`: index and count of the processes that hold the rows between them.
    """
    suggested = {request.name: request.optimizer for request in requests}
    configs = {}
    rates = {}
    for each in json.loads(schema.to_json())["tables"]:
        spec = TableSpec.model_validate(each)
        optimizer = table_optimizer(spec.name, hyper, suggested.get(spec.name))
        config = table_config(spec, hyper, optimizer)
        if share is not None and "eviction" in config:
            config["eviction"] = _divided(config["eviction"], share[1])
        configs[spec.name] = json.dumps(config)
        rates[spec.name] = optimizer.learning_rate
    restarting = [name for name in configs if name in hyper.tables and hyper.tables[name].restart_each_pass]
    return TableSet(configs, rates, restarting, share)


def _divided(eviction: dict[str, Any], count: int) -> dict[str, Any]:
    """A budget for all rows, as each of `count` owners has to keep it: signs are spread evenly."""
    budgets = {"max_rows", "max_bytes"}
    return {key: -(-value // count) if key in budgets else value for key, value in eviction.items()}


def compute_options(runner: RunnerConfig, *, first_worker: int = 0) -> ComputeOptions:
    """How a runner's batches are computed; `first_worker` workers of other processes come before these."""
    return ComputeOptions(
        precision=runner.precision,
        seed=runner.seed,
        is_progressive=runner.progressive_validation,
        first_worker=first_worker,
    )


def make_schedule(config: LearningRateSchedule) -> Schedule:
    """The schedule that a runner asks for."""
    schedule: Schedule
    match config:
        case StepSchedule():
            schedule = Step(config.interval, config.factor, by_pass=config.unit == "pass")
        case ExponentialSchedule():
            schedule = Exponential(config.interval, config.factor, by_pass=config.unit == "pass")
        case CosineSchedule():
            schedule = Cosine(max(config.total_batches - config.warmup_batches, 1), config.minimum)
        case PlateauSchedule():
            schedule = Plateau(
                gamma=config.factor,
                patience=config.patience,
                min_delta=config.min_delta,
                minimum=config.minimum,
                higher_is_better=is_higher_better(config.metric),
            )
        case _:
            schedule = Constant()
    return LinearWarmup(config.warmup_batches, schedule) if config.warmup_batches else schedule


def make_stopping(runner: RunnerConfig) -> EarlyStopping | None:
    """Early stopping, where the runner asks for it."""
    config = runner.early_stopping
    if config is None:
        return None
    return EarlyStopping(
        patience=config.patience,
        min_delta=config.min_delta,
        higher_is_better=is_higher_better(config.metric),
    )


def _adam(optimizer: Adam) -> dict[str, float]:
    return {"beta1": optimizer.beta1, "beta2": optimizer.beta2, "eps": optimizer.epsilon}


def _adagrad(optimizer: Adagrad) -> dict[str, float]:
    return {"initial_accumulator": optimizer.initial_accumulator, "eps": optimizer.epsilon}
