"""Every number that scikit-learn also gives is the same number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error, roc_auc_score

from clickmill.metrics import BinaryMetrics, ExactAuc, GroupAuc, MetricSet, RegressionMetrics

EXACT = 1e-6
BUCKETED = 1e-4


def stream(kind: str, size: int = 20_000, seed: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, labels and weights of a model that is fairly good."""
    random = np.random.default_rng(seed)
    centre, spread = {"wide": (-1.0, 1.5), "skewed": (-4.6, 0.05), "sure": (8.0, 3.0), "tied": (-2.0, 1.0)}[
        kind
    ]
    logit = random.normal(centre, spread, size)
    labels = random.random(size) < 1 / (1 + np.exp(-(centre + 2.0 * (logit - centre))))
    labels[:2] = [True, False]
    scores = 1 / (1 + np.exp(-logit))
    if kind == "tied":
        scores = np.round(scores, 2)
    weights = random.integers(0, 5, size) + random.random(size) + 0.1
    return scores.astype(np.float32), labels.astype(np.float32), weights.astype(np.float32)


KINDS = ("wide", "skewed", "sure", "tied")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_bucketed_auc_is_within_a_ten_thousandth(kind: str, is_weighted: bool) -> None:
    scores, labels, weights = stream(kind)
    metrics = BinaryMetrics()
    metrics.update(scores, labels, weights if is_weighted else None)
    expected = roc_auc_score(labels, scores, sample_weight=weights if is_weighted else None)
    assert metrics.auc() == pytest.approx(expected, abs=BUCKETED)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_exact_auc_is_scikit_learns(kind: str, is_weighted: bool) -> None:
    scores, labels, weights = stream(kind)
    metric = ExactAuc(100_000)
    for part in np.array_split(np.arange(len(scores)), 7):
        metric.update(scores[part], labels[part], weights[part] if is_weighted else None)
    expected = roc_auc_score(labels, scores, sample_weight=weights if is_weighted else None)
    assert metric.auc() == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_means_are_scikit_learns(kind: str, is_weighted: bool) -> None:
    scores, labels, weights = stream(kind)
    sample_weight = weights if is_weighted else None
    metrics = BinaryMetrics()
    for part in np.array_split(np.arange(len(scores)), 13):
        metrics.update(scores[part], labels[part], sample_weight[part] if sample_weight is not None else None)
    values = metrics.report()
    base = float(np.average(labels, weights=sample_weight))
    entropy = -base * math.log(base) - (1 - base) * math.log(1 - base)
    loss = log_loss(labels, scores, sample_weight=sample_weight)
    assert values["logloss"] == pytest.approx(loss, abs=EXACT)
    assert values["ne"] == pytest.approx(loss / entropy, abs=EXACT * 10)
    assert values["mae"] == pytest.approx(
        mean_absolute_error(labels, scores, sample_weight=sample_weight), abs=EXACT
    )
    mse = mean_squared_error(labels, scores, sample_weight=sample_weight)
    assert values["rmse"] == pytest.approx(math.sqrt(mse), abs=EXACT)
    predicted = float(np.average(scores.astype(np.float64), weights=sample_weight))
    assert values["actual_ctr"] == pytest.approx(base, abs=EXACT)
    assert values["predicted_ctr"] == pytest.approx(predicted, abs=EXACT)
    assert values["copc"] == pytest.approx(base / predicted, rel=EXACT)
    q_value = np.average(1 / (1 + np.exp(-scores.astype(np.float64))), weights=sample_weight)
    assert values["mean_q"] == pytest.approx(q_value, abs=EXACT)
    assert values["count"] == len(scores)


def test_a_certain_and_wrong_score_costs_what_scikit_learn_says() -> None:
    scores, labels = np.array([0.0, 1.0], np.float32), np.array([1.0, 0.0], np.float32)
    metrics = BinaryMetrics()
    metrics.update(scores, labels)
    assert metrics.report()["logloss"] == pytest.approx(log_loss(labels, scores), abs=EXACT)


def test_tiny_streams_have_exact_bucketed_auc() -> None:
    scores, labels = np.array([0.2, 0.7, 0.4], np.float32), np.array([0, 1, 1], np.float32)
    metrics = BinaryMetrics()
    metrics.update(scores, labels)
    assert metrics.auc() == 1.0


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_has_auc_one_half_and_no_entropy(label: float) -> None:
    metrics = BinaryMetrics()
    metrics.update(np.array([0.2, 0.7], np.float32), np.full(2, label, np.float32))
    values = metrics.report()
    assert (values["auc"], metrics.batch_auc()) == (0.5, 0.5)
    assert math.isnan(values["ne"])
    assert math.isfinite(values["logloss"])


def test_the_seeds_thresholds_give_the_seeds_auc() -> None:
    scores, labels, _ = stream("wide")
    metrics = BinaryMetrics(thresholds=4096)
    metrics.update(scores, labels)
    buckets = np.minimum((scores * np.float32(4096)).astype(np.int64), 4096)
    assert metrics.auc() == pytest.approx(roc_auc_score(labels, buckets), abs=1e-12)


def test_batch_auc_is_the_auc_of_the_last_twenty_batches() -> None:
    scores, labels, _ = stream("wide", size=3_000)
    metrics = MetricSet()
    for part in np.array_split(np.arange(len(scores)), 30):
        metrics.update(scores[part], labels[part])
    expected = roc_auc_score(labels[1_000:], scores[1_000:])
    assert metrics.compute()["batch_auc"] == pytest.approx(expected, abs=BUCKETED)


@pytest.mark.parametrize("weight", ["impressions", "clicks", "uniform"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_gauc_is_the_mean_of_scikit_learns_auc_per_group(weight: str, is_weighted: bool) -> None:
    scores, labels, weights = stream("tied", size=4_000)
    groups = np.random.default_rng(1).integers(0, 700, len(scores)).astype(np.uint64)
    metric = GroupAuc(weight, 10_000)
    metric.update(groups, scores, labels, weights if is_weighted else None)
    aucs, shares, skipped = [], [], 0
    for group in np.unique(groups):
        inside = groups == group
        if len(np.unique(labels[inside])) < 2:
            skipped += 1
            continue
        own = weights[inside] if is_weighted else np.ones(inside.sum())
        aucs.append(roc_auc_score(labels[inside], scores[inside], sample_weight=own))
        shares.append(
            {"impressions": own.sum(), "clicks": (own * labels[inside]).sum(), "uniform": 1.0}[weight]
        )
    report = metric.report()
    assert report["gauc"] == pytest.approx(np.average(aucs, weights=shares), abs=EXACT)
    assert (report["num_groups"], report["num_skipped"]) == (len(aucs), skipped)


def test_regression_errors_are_scikit_learns() -> None:
    random = np.random.default_rng(3)
    labels = random.integers(1, 6, 5_000).astype(np.float32)
    scores = (labels + random.normal(0, 1, 5_000)).astype(np.float32)
    weights = random.random(5_000).astype(np.float32)
    metrics = RegressionMetrics()
    metrics.update(scores, labels, weights)
    values = metrics.report()
    assert values["mae"] == pytest.approx(
        mean_absolute_error(labels, scores, sample_weight=weights), abs=EXACT
    )
    mse = mean_squared_error(labels, scores, sample_weight=weights)
    assert values["rmse"] == pytest.approx(math.sqrt(mse), abs=EXACT)
    assert values["mean_label"] == pytest.approx(np.average(labels, weights=weights), abs=EXACT)
