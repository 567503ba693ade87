"""Bad lines and missing slots are judged over a whole pass, though trainers read only parts of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clickmill.cli.exits import DATA
from tests.cluster.fleet import BAD_LINES, fleet, run_fleet


def journal(place: Path, event: str) -> list[dict[str, object]]:
    lines = (place / "run/journal.jsonl").read_text().splitlines()
    return [each for each in map(json.loads, lines) if each["event"] == event]


@pytest.mark.parametrize("strategy", ["async", "sync", "geo"])
def test_bad_lines_of_all_trainers_are_told_and_limited_together(cluster_place, strategy):
    options = (f"runner.0.distribute_strategy={strategy}", "runner.0.epochs=1")
    own, summary = run_fleet(cluster_place, 1, 2, *options, f"dataset.0.max_bad_lines={BAD_LINES}")
    own.assert_exact(summary, passes=1)
    assert [each["bad_lines"] for each in journal(cluster_place, "pass_end")] == [BAD_LINES]


def test_more_bad_lines_than_a_pass_may_have_end_the_run_by_name(cluster_place):
    # No unit has that many by itself.
    with fleet(cluster_place, 2, 2, f"dataset.0.max_bad_lines={BAD_LINES - 1}") as own:
        for each in (*own.members, *own.servers):
            assert each.wait() == DATA, own.words
            assert f"{BAD_LINES} bad lines in pass 0, max_bad_lines is {BAD_LINES - 1}" in each.words
            assert "train.txt:2:" in each.words, "the first of them"


@pytest.mark.parametrize("strategy", ["async", "sync", "geo"])
@pytest.mark.parametrize(
    ("text", "remedy"),
    [("", "look at what `data_path`"), ("click:maybe nothing\n" * 3, "3 lines were bad, the first: ")],
    ids=["nothing", "bad lines"],
)
def test_data_without_any_sample_ends_all_roles_as_wrong_data(cluster_place, strategy, text, remedy):
    (cluster_place / "empty.txt").write_text(text)
    options = (f"runner.0.distribute_strategy={strategy}", "dataset.0.data_path=empty.txt")
    with fleet(cluster_place, 2, 2, *options) as own:
        for each in (*own.members, *own.servers):
            assert each.wait() == DATA, own.words
            assert "pass 0 has found no sample in any file of the data" in each.words
            assert remedy in each.words


def add_slot(place: Path, *, on_lines: int) -> None:
    """A slot `coupon` in the schema, and in the last lines of the data."""
    config = (place / "config.yaml").read_text()
    schema = "    - {kind: sparse, name: item}\n"
    assert schema in config
    (place / "config.yaml").write_text(
        config.replace(schema, f"{schema}    - {{kind: sparse, name: coupon}}\n")
    )
    for name in ("train.txt", "test.txt"):
        lines = (place / name).read_text().splitlines()
        split = len(lines) - on_lines
        text = "".join(f"{line}\n" for line in lines[:split])
        text += "".join(f"{line} coupon:c1\n" for line in lines[split:])
        (place / name).unlink()  # it is that of all tests
        (place / name).write_text(text)


def test_a_slot_that_few_units_have_is_trained(cluster_place):
    add_slot(cluster_place, on_lines=20)
    own, summary = run_fleet(cluster_place, 2, 2, "runner.0.epochs=1")
    own.assert_exact(summary, passes=1)


@pytest.mark.parametrize("strategy", ["async", "sync"])
def test_a_slot_that_no_unit_has_is_an_error_behind_a_checkpoint(cluster_place, strategy):
    add_slot(cluster_place, on_lines=0)
    options = (f"runner.0.distribute_strategy={strategy}", "dataset.0.require_slots=true")
    with fleet(cluster_place, 1, 2, *options) as own:
        for each in (*own.members, *own.servers):
            assert each.wait() == DATA, own.words
            assert "slot `coupon` never occurred in the data of pass 0" in each.words
    assert (cluster_place / "run/checkpoints/0/checkpoint.json").is_file()
    assert not own.committed["is_over"]
