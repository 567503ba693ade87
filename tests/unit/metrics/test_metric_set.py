"""MetricSet: names, merging, exact state, refusals; and the seeds' lines."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickmill.errors import ConfigError, DataError, FormatError, StateError
from clickmill.metrics import BINARY_METRICS, BinaryMetrics, MetricSet, batch_line, global_line

ALL = (*BINARY_METRICS, "exact_auc", "gauc")


def batch(seed: int, size: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    scores = random.random(size, dtype=np.float32)
    labels = (random.random(size) < scores).astype(np.float32)
    weights = random.integers(0, 4, size).astype(np.float32)
    return scores, labels, weights, random.integers(0, 20, size).astype(np.uint64)


def filled(*seeds: int) -> MetricSet:
    metrics = MetricSet(ALL)
    for seed in seeds:
        metrics.update(*batch(seed))
    return metrics


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.lists(st.integers(0, 50), max_size=6))
def test_merging_equals_one_stream_to_the_last_bit(left: list[int], right: list[int]) -> None:
    merged = filled(*left)
    merged.merge(filled(*right))
    assert merged.compute() == filled(*left, *right).compute()
    other = filled(*right)
    other.merge(filled(*left))
    assert other.compute() == merged.compute()


def test_a_restored_set_goes_on_as_the_one_that_was_stored() -> None:
    stored, restored = filled(1, 2), MetricSet(ALL)
    restored.load_state_dict(stored.state_dict())
    for metrics in (stored, restored):
        metrics.update(*batch(3))
    assert restored.compute() == stored.compute()
    assert restored.state_dict() == stored.state_dict()


def test_regression_state_survives_too() -> None:
    stored, restored = MetricSet(task="regression"), MetricSet(task="regression")
    stored.update(np.array([3.5, 2.0], np.float32), np.array([4.0, 1.0], np.float32))
    restored.load_state_dict(stored.state_dict())
    assert restored.compute() == stored.compute()
    assert restored.compute()["mae"] == 0.75


def test_names_are_given_in_the_order_asked_for() -> None:
    metrics = MetricSet(["logloss", "auc"])
    metrics.update(*batch(1)[:3])
    assert list(metrics.compute()) == ["logloss", "auc"]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"`auk`.*batch_auc"):
        MetricSet(["auk"])
    with pytest.raises(ConfigError, match="`auc`"):
        MetricSet(["auc"], task="regression")


def test_nan_scores_are_counted_in_the_error_and_nowhere_else() -> None:
    metrics = filled(1)
    before = metrics.compute()
    scores, labels, weights, groups = batch(2)
    scores[[5, 9]] = np.nan
    with pytest.raises(DataError, match=r"2 of 200 scores are NaN.*row 5.*learning rate"):
        metrics.update(scores, labels, weights, groups)
    assert metrics.compute() == before


@pytest.mark.parametrize(
    ("scores", "labels", "words"),
    [([1.5], [1.0], "score 1.5 in row 0"), ([0.5], [3.0], "label 3 in row 0"), ([-0.1], [0.0], "score -0.1")],
)
def test_values_that_cannot_be_are_named(scores: list[float], labels: list[float], words: str) -> None:
    with pytest.raises(DataError, match=words):
        MetricSet().update(np.array(scores, np.float32), np.array(labels, np.float32))


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="labels has 1 elements, scores have 2"):
        MetricSet().update(np.zeros(2, np.float32), np.zeros(1, np.float32))


def test_a_column_of_a_matrix_of_labels_will_do() -> None:
    scores, labels, weights, groups = batch(1)
    metrics = MetricSet(ALL)
    metrics.update(scores, np.stack([labels, 1 - labels], axis=1)[:, 0], weights, groups)
    assert metrics.compute() == filled(1).compute()


def test_the_core_refuses_a_strided_array_rather_than_copy_it() -> None:
    with pytest.raises(ValueError, match="scores must be one contiguous array"):
        BinaryMetrics().update(np.zeros(4, np.float32)[::2], np.zeros(2, np.float32))


@pytest.mark.parametrize("name", ["exact_auc", "gauc"])
def test_past_its_limit_a_metric_that_keeps_scores_stops_or_is_left_out(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    scores, labels, groups = batch(1)[0], batch(1)[1], np.zeros(len(batch(1)[0]), np.uint64)
    strict = MetricSet(["auc", name], limit=len(scores))
    strict.update(scores, labels, None, groups)
    with pytest.raises(StateError, match="its limit is"):
        strict.update(scores, labels, None, groups)
    lenient = MetricSet(["auc", name], limit=len(scores), past_limit="nan")
    lenient.update(scores, labels, None, groups)
    assert not np.isnan(lenient.compute()[name])
    for _ in range(2):
        lenient.update(scores, labels, None, groups)
    assert np.isnan(lenient.compute()[name])
    assert lenient.count == 3 * len(scores)
    assert caplog.text.count("a metric is left out") == 1
    lenient.reset()
    lenient.update(scores, labels, None, groups)
    assert not np.isnan(lenient.compute()[name])


def test_gauc_without_groups_says_what_is_missing() -> None:
    with pytest.raises(StateError, match="group key") as caught:
        MetricSet(["gauc"]).update(*batch(1)[:2])
    assert "group slot" in (caught.value.hint or "")


def test_a_full_exact_metric_names_its_limit() -> None:
    with pytest.raises(StateError, match="would hold 200, its limit is 100"):
        MetricSet(["exact_auc"], limit=100).update(*batch(1)[:2])


def test_a_damaged_state_is_refused() -> None:
    state = filled(1).state_dict()
    with pytest.raises(FormatError, match=r"BinaryMetrics at byte \d+"):
        filled().load_state_dict({**state, "binary": state["binary"][:-3]})
    with pytest.raises(FormatError, match="not a state of this metric"):
        filled().load_state_dict({**state, "binary": state["exact"]})
    with pytest.raises(FormatError, match="needs"):
        MetricSet().load_state_dict(state)


def test_unlike_sets_do_not_merge() -> None:
    with pytest.raises(StateError, match="configured alike"):
        MetricSet().merge(MetricSet(thresholds=4096))
    with pytest.raises(StateError, match="cannot merge"):
        MetricSet().merge(filled())


def test_reset_forgets_everything() -> None:
    metrics = filled(1)
    metrics.reset()
    assert metrics.count == 0
    assert metrics.state_dict() == filled().state_dict()
    assert math.isnan(metrics.compute()["logloss"])


def test_threads_can_share_a_set() -> None:
    metrics = MetricSet(["auc", "logloss", "count"])
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda seed: metrics.update(*batch(seed)[:3]), range(40)))
    alone = MetricSet(["auc", "logloss", "count"])
    for seed in range(40):
        alone.update(*batch(seed)[:3])
    assert metrics.compute() == alone.compute()


def test_values_are_plain_numbers_for_the_journal() -> None:
    assert json.loads(json.dumps(filled(1, 2).compute())) == filled(1, 2).compute()


def test_batch_line_is_the_seeds_line() -> None:
    line = batch_line(
        pass_number=0, batch=0, loss=0.697331115723, auc=0.500826068453, batch_auc=0.500826068453
    )
    assert line == (
        "TRAIN --> pass: 0 batch: 0 loss: 0.697331115723 auc: 0.500826068453, batch_auc: 0.500826068453"
    )


def test_global_line_is_paddlerecs_line() -> None:
    metrics = MetricSet()
    metrics.update(np.array([0.25, 0.75], np.float32), np.array([0.0, 1.0], np.float32))
    assert global_line(metrics.compute()) == (
        "AUC=1.000000 BUCKET_ERROR=0.000000 MAE=0.250000 RMSE=0.250000 Actural_CTR=0.500000 "
        "Predicted_CTR=0.500000 COPC=1.000000 MEAN Q_VALUE=0.620678 Ins number=2"
    )


def test_derived_numbers_come_after_those_that_they_are_made_from() -> None:
    metrics = MetricSet(task="regression", derived=lambda values: {"half": values["rmse"] / 2.0})
    metrics.update(np.array([1.0, 3.0], np.float32), np.array([1.0, 1.0], np.float32))
    values = metrics.compute()
    assert list(values)[-1] == "half"
    assert values["half"] == pytest.approx(2.0**0.5 / 2.0)
