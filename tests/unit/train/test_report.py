"""The page of a run says what the journal says, whatever the task of the model."""

from __future__ import annotations

from typing import Any

from clickmill.train.report import render


def journal(**metrics: float | None) -> list[dict[str, Any]]:
    """Two intervals and a pass with these metrics."""
    interval = {"event": "interval", "loss": 0.5, "samples_per_second": 1e5, "learning_rate": 0.1}
    end = {"event": "pass_end", "step": 2, "pass_number": 0, "samples": 100, "seconds": 1.0, "bad_lines": 0}
    return [
        {"event": "run_start", "model": "m", "num_parameters": 1, "num_workers": 1},
        *(
            {**interval, "step": step, "batch": step - 1, "samples": 50 * step, "metrics": metrics}
            for step in (1, 2)
        ),
        {**end, "train": metrics, "validation": metrics, "table_rows": {"embedding": 7}},
    ]


def test_cards_of_a_regression_name_its_error_and_what_the_model_derives():
    page = render(journal(rmse=1.8, mae=1.5, error_in_stars=0.9), "run")
    assert "<b>1.80000</b><span>best validation RMSE</span>" in page
    assert "<b>0.90000</b><span>validation error in stars, last pass</span>" in page
    assert "AUC" not in page
    assert "Log loss" not in page


def test_metrics_that_are_not_numbers_are_left_out_of_the_curves():
    page = render(journal(auc=0.5, logloss=0.1, copc=None), "run")
    assert "<b>0.50000</b><span>train AUC, last pass</span>" in page
    assert "Calibration" not in page
    assert "None" not in page
    assert "nan" not in page


def test_training_and_validation_of_a_metric_stand_side_by_side():
    page = render(journal(auc=0.5, logloss=0.1), "run")
    assert "<th>auc train</th><th>auc validation</th><th>logloss train</th>" in page
