"""Streaming, mergeable metrics, and the lines in which the seeds print them."""

from __future__ import annotations

from clickmill._core import BinaryMetrics, ExactAuc, GroupAuc, RegressionMetrics
from clickmill.metrics.lines import batch_line, global_line
from clickmill.metrics.metric_set import BINARY_METRICS, DEFAULT_LIMIT, REGRESSION_METRICS, MetricSet

__all__ = [
    "BINARY_METRICS",
    "DEFAULT_LIMIT",
    "REGRESSION_METRICS",
    "BinaryMetrics",
    "ExactAuc",
    "GroupAuc",
    "MetricSet",
    "RegressionMetrics",
    "batch_line",
    "global_line",
]
