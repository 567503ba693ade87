"""examples/avazu: a CSV in time order, trained, scored, reported, killed and resumed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file
from sklearn.metrics import roc_auc_score

from tests.e2e.conftest import Workplace, copy_example
from tests.e2e.made_up import write_avazu

ROWS = 4000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    folder = tmp_path_factory.mktemp("avazu")
    place = copy_example("avazu", folder)
    write_avazu(folder / "examples/avazu/data/avazu.csv", rows=ROWS)
    return place


@pytest.fixture(scope="module")
def trained(place: Workplace) -> dict[str, Any]:
    (summary,) = place.json("train", "-m", "examples/avazu", "--set", "runner.by_time.epochs=2")
    return dict(summary)


def test_the_last_fifth_is_predicted_better_than_by_chance(trained: dict[str, Any]) -> None:
    assert trained["validation"]["auc"] > 0.65
    held_out = trained["validation"]["count"]
    assert held_out == pytest.approx(0.2 * ROWS, abs=20)
    assert trained["train"]["count"] == ROWS - held_out


def test_evaluation_says_what_validation_said_and_adds_the_auc_within_devices(
    place: Workplace, trained: dict[str, Any]
) -> None:
    found = place.json("evaluate", "-m", "examples/avazu")
    assert found["auc"] == trained["validation"]["auc"]
    assert found["checkpoint"].endswith("run/by_time/checkpoints/1")
    assert 0.5 < found["gauc"] < 1.0


def test_scores_are_those_of_the_held_out_lines_in_their_order(
    place: Workplace, trained: dict[str, Any]
) -> None:
    told = place.json("infer", "-m", "examples/avazu", "--output", "scores.txt")
    scores = [float(line) for line in (place.folder / "scores.txt").read_text().split()]
    with (place.folder / "examples/avazu/data/avazu.csv").open(newline="") as file:
        labels = [int(row["click"]) for row in csv.DictReader(file)]
    assert told["samples"] == len(scores) == trained["validation"]["count"]
    assert all(0.0 < score < 1.0 for score in scores)
    auc = roc_auc_score(labels[-len(scores) :], scores)
    assert auc == pytest.approx(trained["validation"]["auc"], abs=1e-4)


def test_report_shows_the_curves(place: Workplace, trained: dict[str, Any]) -> None:
    page = Path(place.json("report", "examples/avazu/run/by_time")["report"])
    text = (place.folder / page).read_text(encoding="utf-8")
    assert text.count("<svg") >= 3
    assert f"{trained['validation']['auc']:.5f}" in text


def test_progressive_validation_holds_nothing_out_and_beats_chance(place: Workplace) -> None:
    (summary,) = place.json("train", "-m", "examples/avazu", "--set", "mode=progressive")
    assert summary["train"]["count"] == ROWS
    assert summary["train"]["auc"] > 0.65
    assert summary["validation"] == {}


def test_a_killed_run_goes_on_as_if_nothing_had_happened(place: Workplace) -> None:
    def command(folder: str, *more: str) -> tuple[str, ...]:
        settings = (f"runner.0.output_path={folder}", "runner.0.epochs=2", "runner.0.save_step_interval=5")
        return (
            "train",
            "-m",
            "examples/avazu",
            *(word for each in settings for word in ("--set", each)),
            *more,
        )

    place.run(*command("whole"))
    with place.start(*command("killed")) as process:
        assert process.stderr is not None
        assert any("checkpoint.saved" in line for line in process.stderr)
        process.kill()
    assert not (place.folder / "killed/checkpoints/1").exists()
    place.run(*command("killed", "--resume"))
    states = [_state(place.folder / name / "checkpoints/1") for name in ("whole", "killed")]
    assert states[0] == states[1]


def _state(checkpoint: Path) -> dict[str, Any]:
    """What must be equal bit for bit: dense parameters, digests of tables, metrics, position."""
    manifest = json.loads((checkpoint / "checkpoint.json").read_text())
    trainer = json.loads((checkpoint / "trainer.json").read_text())
    del trainer["journal_bytes"]  # the journal holds times
    dense = load_file(checkpoint / "dense.safetensors")
    return {
        "dense": {name: array.tobytes() for name, array in dense.items()},
        "metrics": manifest["metrics"],
        "step": manifest["step"],
        "trainer": trainer,
    }
