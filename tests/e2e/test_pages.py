"""The tutorial and the guides work as they are printed, command by command, in an empty folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT
from tests.e2e.pages import follow

DOCS = ROOT / "docs"
_VALIDATION_AUC = re.compile(r"^ *auc +[\d.]+ +([\d.]+)", re.MULTILINE)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def rows_of(run: Path) -> int:
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    return int([event for event in events if event["event"] == "pass_end"][-1]["table_rows"]["embedding"])


def test_the_tutorial_leads_to_a_model_scores_and_a_report(place: Path, tmp_path: Path) -> None:
    results = follow(DOCS / "tutorial/first-model.md", place, tmp_path / "bin")
    (first, *_) = _VALIDATION_AUC.findall("".join(done.stdout for done in results))
    assert float(first) == pytest.approx(0.70, abs=0.03)  # what the page says
    assert len((place / "scores.txt").read_text().split()) == 20_000
    assert (place / "runs/first/report.html").is_file()
    assert (place / "runs/first/checkpoints/1").is_dir()
    assert (place / "runs/deepfm/checkpoints/0").is_dir()


def test_a_log_with_holes_and_lists_is_described_and_trained_on(place: Path, tmp_path: Path) -> None:
    results = follow(DOCS / "guides/data-formats.md", place, tmp_path / "bin")
    assert "user x tags" in results[0].stdout
    assert (place / "runs/train/checkpoints/0").is_dir()


def test_a_reader_of_the_user_learns_its_log(place: Path, tmp_path: Path) -> None:
    *_, trained = follow(DOCS / "guides/own-reader.md", place, tmp_path / "bin")
    (auc,) = _VALIDATION_AUC.findall(trained.stdout)
    assert float(auc) > 0.7


def test_checkpoints_are_kept_resumed_from_and_started_from(place: Path, tmp_path: Path) -> None:
    follow(DOCS / "guides/checkpoints.md", place, tmp_path / "bin")
    assert {"1", "2"} <= {path.name for path in (place / "runs/train/checkpoints").iterdir()}
    assert (place / "runs/second/checkpoints/0").is_dir()


def test_time_ordered_data_is_split_and_validated_progressively(place: Path, tmp_path: Path) -> None:
    results = follow(DOCS / "guides/time-ordered-data.md", place, tmp_path / "bin")
    assert results[1].stdout.endswith("hour,click\n14102103,1\n")
    assert (place / "runs/progressive/report.html").is_file()
    assert (place / "runs/tomorrow/checkpoints/0").is_dir()


def test_admission_and_eviction_make_tables_smaller(place: Path, tmp_path: Path) -> None:
    follow(DOCS / "guides/tables.md", place, tmp_path / "bin")
    everything = rows_of(place / "runs/all")
    assert rows_of(place / "runs/admitted") < everything / 2
    assert rows_of(place / "runs/evicted") <= 20_000 < everything


def test_two_ranks_train_and_one_process_evaluates(place: Path, tmp_path: Path) -> None:
    _, done = follow(DOCS / "guides/collective.md", place, tmp_path / "bin")
    (auc,) = _VALIDATION_AUC.findall(done.stdout)
    assert float(auc) > 0.5
    assert "exact_auc" in done.stdout


def test_a_job_is_shown_and_then_submitted_to_this_machine(place: Path, tmp_path: Path) -> None:
    _, done = follow(DOCS / "guides/submitting.md", place, tmp_path / "bin")
    assert done.stdout.startswith("clickmill train -m config.yaml --set")
    assert (place / "runs/ps_cluster/checkpoints/0").is_dir()
