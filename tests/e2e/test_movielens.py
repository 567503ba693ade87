"""examples/movielens: stars as in 2016, clicks by time, and a behaviour sequence from an own reader."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Workplace, copy_example
from tests.e2e.made_up import write_movielens

SMALL = ("--set", "hyper_parameters.sparse_feature_dim=8", "--set", "dataset.0.batch_size=100")
EXAMPLE = Path("examples/movielens")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    folder = tmp_path_factory.mktemp("movielens")
    place = copy_example("movielens", folder)
    write_movielens(folder / EXAMPLE / "data")
    return place


@pytest.fixture(scope="module")
def stars(place: Workplace) -> tuple[dict[str, Any], str]:
    """The summary of the 2016 demo, and its log."""
    split = ("--by", "hash", "--fraction", "0.1", "--output", EXAMPLE / "data/random")
    place.run("data", "split", EXAMPLE / "data/ratings.dat", *split)
    done = place.run("train", "-m", EXAMPLE, *SMALL, "--set", "runner.train.epochs=4", "--json")
    (summary,) = json.loads(done.stdout)
    return summary, done.stderr


def test_each_pass_has_a_folder_with_all_that_the_model_is(place: Workplace, stars: object) -> None:
    output = place.folder / EXAMPLE / "run/stars/output"
    assert sorted(path.name for path in output.iterdir()) == [f"pass-0000{number}" for number in range(4)]
    files = {str(path.relative_to(output / "pass-00000")) for path in (output / "pass-00000").rglob("*.*")}
    assert {"checkpoint.json", "schema.json", "dense.safetensors", "tables/embedding.rows"} <= files


def test_the_error_in_stars_is_told_after_each_pass_and_falls(stars: tuple[dict[str, Any], str]) -> None:
    _, log = stars
    errors = [float(text) for text in re.findall(r"validation: .* ERROR_IN_STARS=([\d.]+)", log)]
    assert len(errors) == 4
    assert errors[-1] < errors[0]


def test_stars_are_guessed_better_than_by_their_mean(
    place: Workplace, stars: tuple[dict[str, Any], str]
) -> None:
    summary, _ = stars
    held_out = (place.folder / EXAMPLE / "data/random/test-ratings.dat").read_text().splitlines()
    spread = statistics.pstdev(float(line.split("::")[2]) for line in held_out)
    assert summary["validation"]["error_in_stars"] < 0.9 * spread
    assert summary["validation"]["count"] == len(held_out)


def test_evaluation_of_an_older_pass_tells_its_error_in_stars(place: Workplace, stars: object) -> None:
    checkpoint = EXAMPLE / "run/stars/output/pass-00000"
    found = place.json("evaluate", "-m", EXAMPLE, "--checkpoint", checkpoint)
    # The label of the demo is `stars * 2 - 5`.
    assert found["error_in_stars"] == pytest.approx(found["rmse"] / 2.0)
    manifest = json.loads((place.folder / checkpoint / "checkpoint.json").read_text())
    assert found["error_in_stars"] == pytest.approx(manifest["metrics"]["error_in_stars"])


def test_clicks_of_the_future_are_predicted_from_the_past(place: Workplace) -> None:
    split = ("--delimiter", "::", "--by", "4", "--fraction", "0.1", "--output", EXAMPLE / "data/by_time")
    parts = place.json("data", "split", EXAMPLE / "data/ratings.dat", *split)
    past, future = (_times(place.folder / parts[name]) for name in ("train", "test"))
    assert max(past) <= min(future)
    (summary,) = place.json("train", "-m", EXAMPLE / "click.yaml", *SMALL, "--set", "runner.click.epochs=3")
    assert summary["validation"]["auc"] > 0.65


def test_a_behaviour_sequence_from_an_own_reader_is_learnt_from(place: Workplace) -> None:
    (summary,) = place.json("train", "-m", EXAMPLE / "din.yaml", *SMALL, "--set", "runner.din.epochs=3")
    assert summary["validation"]["auc"] > 0.65
    # `evaluate_dataset_name` of the runner names what is scored.
    found = place.json("evaluate", "-m", EXAMPLE / "din.yaml")
    assert found["auc"] == summary["validation"]["auc"]
    assert found["samples"] == summary["validation"]["count"] == 480


def _times(path: Path) -> list[int]:
    return [int(line.split("::")[3]) for line in path.read_text().splitlines()]
