"""examples/own_model, examples/own_reader: a user's classes go through all that built-in ones go through."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Workplace, copy_example
from tests.e2e.made_up import write_plays

MODEL, READER = Path("examples/own_model"), Path("examples/own_reader")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    folder = tmp_path_factory.mktemp("own")
    copy_example("own_model", folder)
    return copy_example("own_reader", folder)


def test_a_trained_model_is_scored_without_the_file_that_it_came_from(place: Workplace) -> None:
    place.run("data", "synth", MODEL / "data/train.tsv", "--rows", "10000")
    # Few samples, so larger steps.
    (summary,) = place.json("train", "-m", MODEL, "--set", "hyper_parameters.optimizer.learning_rate=0.01")
    assert summary["validation"]["auc"] > 0.6
    # The checkpoint holds a copy of the model; what happens to the file afterwards changes nothing.
    (place.folder / MODEL / "model.py").write_text("raise RuntimeError('not the model that was trained')\n")
    found = place.json("evaluate", "-m", MODEL)
    assert found["auc"] == summary["validation"]["auc"]


def test_the_guide_shows_the_model_of_the_example() -> None:
    guide = (ROOT / "docs/guides/own-model.md").read_text(encoding="utf-8")
    (first, *_) = re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    assert first == (ROOT / MODEL / "model.py").read_text(encoding="utf-8")


def test_nested_json_is_learnt_through_a_reader_of_the_user(place: Workplace) -> None:
    write_plays(place.folder / READER / "data/train.jsonl", rows=3000)
    write_plays(place.folder / READER / "data/test.jsonl", rows=600, seed=1)
    (summary,) = place.json("train", "-m", READER, "--set", "runner.train.epochs=3")
    assert summary["train"]["count"] == 3000
    assert summary["validation"]["auc"] > 0.65
    told = place.json("infer", "-m", READER, "--output", "scores.txt", "--dataset", "plays")
    assert len((place.folder / "scores.txt").read_text().split()) == told["samples"] == 3000


def test_options_of_the_reader_reach_it(place: Workplace) -> None:
    write_plays(place.folder / "few.jsonl", rows=200)
    settings = ("dataset.plays.data_path=few.jsonl", "runner.train.epochs=1", "runner.train.output_path=few")
    options = [word for each in settings for word in ("--set", each)]
    # Nobody plays a song for so long, so that no sample is positive.
    (summary,) = place.json(
        "train", "-m", READER, *options, "--set", "dataset.plays.reader_options.min_seconds=1000"
    )
    assert summary["train"]["actual_ctr"] == 0.0
