"""What the trainers of a run are called."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from clickmill.train.cluster.meter import JOURNALS
from clickmill.train.journal import Journal
from clickmill.train.traces import read_trainers


def life(folder: Path, incarnation: int, name: str, number: int, begin: float, end: float) -> None:
    with closing(Journal(folder / JOURNALS, name=f"{incarnation}.jsonl")) as journal:
        journal.write("trainer_start", time=begin, name=name, number=number, units=1)
        journal.write("interval", time=end, batches=1)


def test_a_trainer_that_came_back_with_another_number_is_one(tmp_path):
    life(tmp_path, 1, "trainer 0", 1, 0.0, 5.0)
    life(tmp_path, 2, "trainer 1", 0, 0.0, 9.0)
    life(tmp_path, 3, "trainer 0", 2, 6.0, 9.0)
    assert {name: len(events) for name, events in read_trainers(tmp_path).items()} == {
        "trainer 0": 4,
        "trainer 1": 2,
    }


def test_trainers_of_one_name_are_told_apart_by_their_numbers(tmp_path):
    life(tmp_path, 1, "trainer", 0, 0.0, 5.0)
    life(tmp_path, 2, "trainer", 1, 1.0, 6.0)
    assert list(read_trainers(tmp_path)) == ["trainer, number 0", "trainer, number 1"]
