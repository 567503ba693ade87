"""Which metrics a run computes, and in which words the log tells them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clickmill.metrics import BINARY_METRICS, MetricSet, batch_line, global_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickmill._core import Schema
    from clickmill.nn import Model


def training_metrics(model: Model) -> MetricSet:
    """Metrics of a pass over the training samples: those whose memory does not grow with them."""
    if model.task == "regression":
        return MetricSet(task="regression", derived=model.derived_metrics)
    return MetricSet(derived=model.derived_metrics)


def scoring_metrics(model: Model, schema: Schema, *, is_exact: bool = False) -> MetricSet:
    """Metrics of samples that are only scored: nothing changes while they are, so no metric looks back.

    GAUC is among them where the schema has a group slot; `is_exact` adds the exact AUC. Both keep every
    score, and are NaN where there are too many of them.
    """
    if model.task == "regression":
        return MetricSet(task="regression", derived=model.derived_metrics)
    names = [name for name in BINARY_METRICS if name != "batch_auc"]
    if is_exact:
        names.append("exact_auc")
    if _has_group(schema):
        names.append("gauc")
    return MetricSet(names, derived=model.derived_metrics, past_limit="nan")


def main_metric(metrics: MetricSet) -> str:
    """The metric that decides between two models where nothing else is said."""
    return "auc" if metrics.task == "binary" else "rmse"


def train_line(pass_number: int, batch: int, loss: float, metrics: Mapping[str, float]) -> str:
    """The line of a batch in the log, in the seeds' words."""
    if "auc" in metrics:
        return batch_line(
            pass_number=pass_number,
            batch=batch,
            loss=loss,
            auc=metrics["auc"],
            batch_auc=metrics["batch_auc"],
        )
    return f"TRAIN --> pass: {pass_number} batch: {batch} loss: {loss:.12g} rmse: {metrics['rmse']:.12g}"


def summary_line(metrics: Mapping[str, float]) -> str:
    """The line of a whole pass: in the seeds' words, then what a model has derived."""
    if "auc" in metrics:
        own = [name for name in metrics if name not in BINARY_METRICS]
        return " ".join([global_line(metrics), *(_word(name, metrics[name]) for name in own)])
    return " ".join(_word(name, value) for name, value in metrics.items())


def _word(name: str, value: float) -> str:
    return f"{name.upper()}={value:.0f}" if name == "count" else f"{name.upper()}={value:.6f}"


def _has_group(schema: Schema) -> bool:
    return any(slot["kind"] == "group" for slot in json.loads(schema.to_json())["slots"])
