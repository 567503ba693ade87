"""The trainer computes what a plain PyTorch loop computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.train.reference import Reference, assert_close, config_of, trained, write_log

from clickmill.errors import ConfigError
from clickmill.train.api import evaluate, infer, train
from clickmill.train.journal import read_journal
from clickmill.train.schedule import Cosine, Exponential, LinearWarmup, Step


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "train.txt", 1030)
    write_log(tmp_path / "test.txt", 400, seed=1)
    return tmp_path


OPTIMIZERS = {
    "SGD": (
        "hyper_parameters.optimizer={class: SGD, learning_rate: 0.5}",
        lambda parameters: torch.optim.SGD(parameters, lr=0.5),
    ),
    "Adagrad": (
        "hyper_parameters.optimizer={class: Adagrad, learning_rate: 0.05, initial_accumulator: 0.1}",
        lambda parameters: torch.optim.Adagrad(parameters, lr=0.05, initial_accumulator_value=0.1),
    ),
    "Adam": (
        "hyper_parameters.optimizer={class: Adam, learning_rate: 0.01, lazy_mode: false}",
        lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    ),
}


@pytest.mark.parametrize("num_workers", [1, 2, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_equals_a_plain_loop_whatever_the_number_of_workers(name, num_workers):
    option, make_optimizer = OPTIMIZERS[name]
    config = config_of(option, f"phase.0.thread_num={num_workers}")
    reference = Reference(config)
    assert len(reference.batches) == 20
    losses, parameters, _ = reference.train(make_optimizer)
    (summary,) = train(config)
    assert summary["step"] == 20
    assert_close(trained(Path("run"), reference.signs), (losses, parameters))
    assert all(float((parameters[each] - reference.start[each]).abs().max()) > 1e-3 for each in parameters)


def test_a_step_that_is_left_out_shows():
    """So that the comparison above is known to notice one update in twenty."""
    reference = Reference(config_of())
    whole = reference.train(OPTIMIZERS["SGD"][1])[1]
    reference.batches.pop(10)
    less = reference.train(OPTIMIZERS["SGD"][1])[1]
    assert max(float((whole[name] - less[name]).abs().max()) for name in whole) > 1e-3


@pytest.mark.parametrize("num_workers", [1, 2])
def test_gradients_are_clipped_to_one_norm_over_dense_parameters_and_rows(num_workers):
    option, make_optimizer = OPTIMIZERS["SGD"]
    config = config_of(option, "runner.0.clip_norm=0.05", f"phase.0.thread_num={num_workers}")
    reference = Reference(config)
    losses, parameters, _ = reference.train(make_optimizer, clip_norm=0.05)
    train(config)
    assert_close(trained(Path("run"), reference.signs), (losses, parameters))


def test_l2_is_torchs_weight_decay_on_all_that_a_batch_touches():
    """One batch, all of whose rows are touched: later ones would show that other rows are left alone."""
    config = config_of("hyper_parameters.reg=0.1", "runner.0.max_batches=1")
    reference = Reference(config, num_batches=1)
    losses, parameters, _ = reference.train(
        lambda parameters: torch.optim.SGD(parameters, lr=0.5, weight_decay=0.1)
    )
    train(config)
    assert_close(trained(Path("run"), reference.signs), (losses, parameters))


SCHEDULES = {
    "{class: step, interval: 6, factor: 0.5, unit: batch}": Step(6, 0.5),
    "{class: exponential, interval: 10, factor: 0.1, unit: batch}": Exponential(10, 0.1),
    "{class: cosine, total_batches: 15, minimum: 0.1, warmup_batches: 5}": LinearWarmup(5, Cosine(10, 0.1)),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_takes_effect_at_its_batch_and_the_journal_says_so(schedule):
    config = config_of(f"runner.0.learning_rate_schedule={schedule}")
    factors = [SCHEDULES[schedule].factor(step, 0) for step in range(20)]
    reference = Reference(config)
    losses, parameters, _ = reference.train(OPTIMIZERS["SGD"][1], factors=factors)
    train(config)
    assert_close(trained(Path("run"), reference.signs), (losses, parameters))
    rates = [event["learning_rate"] for event in read_journal(Path("run")) if event["event"] == "interval"]
    np.testing.assert_allclose(rates, [0.5 * factor for factor in factors], rtol=1e-12)


def test_a_plateau_lowers_the_rate_after_the_pass_that_was_not_better():
    config = config_of(
        "runner.0.learning_rate_schedule={class: plateau, patience: 1, min_delta: 0.9, factor: 0.5}",
        "runner.0.epochs=6",
    )
    train(config)
    rates: dict[int, set[float]] = {}
    for event in read_journal(Path("run")):
        if event["event"] == "interval":
            rates.setdefault(event["pass_number"], set()).add(event["learning_rate"])
    # Pass 0 is the best for ever; 1 is forgiven, 2 is not; 3 is forgiven, 4 is not.
    assert [rates[number] for number in range(6)] == [{0.5}, {0.5}, {0.5}, {0.25}, {0.25}, {0.125}]


def test_plateau_and_early_stopping_each_watch_their_own_metric():
    config = config_of(
        "runner.0.learning_rate_schedule={class: plateau, metric: logloss, patience: 0, factor: 0.5}",
        "runner.0.early_stopping={metric: auc, patience: 9}",
        "runner.0.epochs=3",
    )
    train(config)
    ends = [event for event in read_journal(Path("run")) if event["event"] == "pass_end"]
    assert [end["train"]["logloss"] for end in ends] == sorted(
        (end["train"]["logloss"] for end in ends), reverse=True
    )
    assert not [event for event in read_journal(Path("run")) if event["event"] == "note"]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_progressive_scores_are_those_of_the_model_before_the_update(num_workers):
    option, make_optimizer = OPTIMIZERS["SGD"]
    config = config_of(option, f"phase.0.thread_num={num_workers}", "runner.0.progressive_validation=true")
    reference = Reference(config)
    _, _, scores = reference.train(make_optimizer)
    (summary,) = train(config)
    score = np.concatenate([each.numpy() for each in scores])
    label = np.concatenate([batch.labels[:, 0] for batch in reference.batches])
    weight = np.concatenate([batch.weights for batch in reference.batches])
    logloss = -(label * np.log(score) + (1 - label) * np.log(1 - score))
    assert summary["train"]["logloss"] == pytest.approx(np.average(logloss, weights=weight), abs=1e-5)
    assert summary["train"]["predicted_ctr"] == pytest.approx(np.average(score, weights=weight), abs=1e-5)


def test_progressive_scores_are_drawn_without_dropout():
    options = (
        "hyper_parameters.dropout=0.5",
        "runner.0.progressive_validation=true",
        "runner.0.max_batches=1",
    )
    config = config_of(*options)
    reference = Reference(config, num_batches=1)
    reference.model.eval()
    score = torch.sigmoid(reference.logits(reference.batches[0], reference.start)).detach().numpy()
    (summary,) = train(config)
    expected = np.average(score, weights=reference.batches[0].weights)
    assert summary["train"]["predicted_ctr"] == pytest.approx(expected, abs=1e-5)


def test_gauc_is_the_mean_over_the_groups_of_the_schema():
    from sklearn.metrics import roc_auc_score

    config = config_of("dataset.0.validation={data_path: test.txt}")
    train(config)
    result = evaluate(config)
    infer(config, Path("scores.txt"))
    scores = np.loadtxt("scores.txt", dtype=np.float32)
    lines = Path("test.txt").read_text().splitlines()
    samples = [dict(word.split(":") for word in line.split()) for line in lines]
    users = np.array([sample["user"] for sample in samples])
    labels = np.array([int(sample["click"]) for sample in samples])
    weights = np.array([float(sample["weight"]) for sample in samples])
    total = counted = 0.0
    for user in np.unique(users):
        mine = users == user
        if len(set(labels[mine])) == 2:
            impressions = weights[mine].sum()
            total += impressions * roc_auc_score(labels[mine], scores[mine], sample_weight=weights[mine])
            counted += impressions
    assert result["gauc"] == pytest.approx(total / counted, abs=1e-6)


def test_validation_tells_gauc_and_nothing_that_looks_back_over_batches():
    config = config_of("dataset.0.validation={data_path: test.txt}", "runner.0.epochs=2")
    (summary,) = train(config)
    result = evaluate(config)
    assert summary["validation"]["gauc"] == result["gauc"]
    assert "batch_auc" not in summary["validation"]
    assert "batch_auc" in summary["train"]
    # Training scores are not kept, however many there are.
    assert "gauc" not in summary["train"]


def test_a_run_can_be_stopped_by_the_gauc_of_its_validation():
    stopping = "runner.0.early_stopping={metric: gauc, patience: 0, min_delta: 0.9}"
    config = config_of("dataset.0.validation={data_path: test.txt}", "runner.0.epochs=5", stopping)
    (summary,) = train(config)
    assert summary["step"] == 2 * 20


@pytest.mark.parametrize(
    ("metric", "validation", "words"),
    [
        ("batch_auc", "{data_path: test.txt}", r"no metric `batch_auc` of validation; there are: .*gauc"),
        ("gauc", "null", r"no metric `gauc` of training, for there are no validation samples"),
    ],
)
def test_a_metric_that_is_not_measured_cannot_stop_a_run(metric, validation, words):
    stopping = f"runner.0.early_stopping={{metric: {metric}}}"
    with pytest.raises(ConfigError, match=words):
        train(config_of(f"dataset.0.validation={validation}", stopping))


def test_rows_that_no_batch_touches_stay_as_they_were():
    config = config_of("runner.0.max_batches=3")
    reference = Reference(config)
    train(config)
    _, parameters = trained(Path("run"), reference.signs)
    touched = np.unique(np.concatenate([batch.signs(0) for batch in reference.batches[:3]]))
    is_touched = np.isin(reference.signs, touched)
    moved = (parameters["embedding"] != reference.start["embedding"]).any(dim=1).numpy()
    assert not is_touched.all()
    assert not moved[~is_touched].any()
    assert moved[is_touched].mean() > 0.95
