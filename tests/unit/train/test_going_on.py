"""A run that has ended goes on when more passes are asked for, and only then."""

from __future__ import annotations

from pathlib import Path

from tests.unit.train.conftest import small_config
from tests.unit.train.test_run import fingerprint

from clickmill.train.api import evaluate, train


def test_a_second_pass_asked_for_later_equals_one_that_was_planned(workplace):
    train(small_config("runner.0.output_path=planned"))
    train(small_config("runner.0.output_path=later", "runner.0.epochs=1"))
    train(small_config("runner.0.output_path=later"), resume=True)
    assert fingerprint(Path("planned/checkpoints/1")) == fingerprint(Path("later/checkpoints/1"))


def test_a_run_with_all_its_passes_is_left_alone(workplace):
    train(small_config())
    before = fingerprint(Path("run/checkpoints/1"))
    (summary,) = train(small_config(), resume=True)
    assert summary["checkpoint"] == "run/checkpoints/1"
    assert fingerprint(Path("run/checkpoints/1")) == before
    assert sorted(path.name for path in Path("run/checkpoints").iterdir()) == ["0", "1"]


def test_evaluation_says_when_it_scores_what_was_trained_on(workplace, caplog):
    train(small_config("runner.0.epochs=1"))
    evaluate(small_config())
    assert "was trained on" not in caplog.text
    result = evaluate(small_config("dataset.0.validation=null"))
    assert result["samples"] == 3050
    assert "data set `log` has no validation samples" in caplog.text
