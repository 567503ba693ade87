from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from clickmill.errors import DataError, FormatError
from clickmill.train.journal import Journal, read_journal


def test_events_come_back_in_order(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write("note", text="größer")
        journal.write("interval", loss=0.5)
    assert list(read_journal(tmp_path)) == [
        {"event": "note", "text": "größer"},
        {"event": "interval", "loss": 0.5},
    ]


def test_a_resumed_run_cuts_what_came_after_its_checkpoint(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write("interval", step=1)
        length = journal.num_bytes()
        journal.write("interval", step=2)
    with closing(Journal(tmp_path, keep_bytes=length)) as resumed:
        resumed.write("interval", step=2, again=True)
    assert [event["step"] for event in read_journal(tmp_path)] == [1, 2]


def test_a_half_written_last_line_is_passed_over(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write("interval", step=1)
    with journal.path.open("ab") as file:
        file.write(b'{"event": "inter')
    assert len(list(read_journal(tmp_path))) == 1


def test_a_journal_shorter_than_the_checkpoint_says_is_refused(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write("interval", step=1)
    with pytest.raises(FormatError, match="when it had 5000"):
        Journal(tmp_path, keep_bytes=5000)


def test_a_folder_without_journal_is_named(tmp_path):
    with pytest.raises(DataError, match="no journal"):
        list(read_journal(tmp_path))


def steps_of(folder: Path, kind: str) -> list[int]:
    return [event["step"] for event in read_journal(folder) if event["event"] == kind]


def test_what_was_told_of_steps_that_were_undone_does_not_count(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write("epoch_start", epoch=1, step=0)
        journal.write("interval", step=5)
        journal.write("interval", step=10)
        journal.write("pass_end", pass_number=0, step=12)
        journal.write("epoch_start", epoch=2, step=7)
        journal.write("interval", step=8)
        journal.write("pass_end", pass_number=0, step=12)
    assert steps_of(tmp_path, "interval") == [5, 8]
    assert steps_of(tmp_path, "pass_end") == [12]


def test_an_epoch_that_several_trainers_tell_of_begins_once(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write("epoch_start", epoch=2, step=7)
        journal.write("interval", step=8)
        journal.write("epoch_start", epoch=2, step=7)
    assert steps_of(tmp_path, "interval") == [8]


def test_a_pass_that_ends_again_undoes_the_ends_of_those_after_it(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        for number, step in ((0, 10), (1, 20), (2, 30), (1, 20)):
            journal.write("pass_end", pass_number=number, step=step)
    assert steps_of(tmp_path, "pass_end") == [10, 20]


def test_writers_of_one_journal_cut_nothing_of_each_other(tmp_path):
    with closing(Journal(tmp_path)) as first, closing(Journal(tmp_path, keep_bytes=None)) as second:
        first.write("interval", step=1)
        second.write("interval", step=2)
        first.write("interval", step=3)
    assert steps_of(tmp_path, "interval") == [1, 2, 3]


def test_a_damaged_line_is_named_with_its_number(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write("interval", step=1)
    with journal.path.open("ab") as file:
        file.write(b"nonsense\n")
    with pytest.raises(FormatError, match=r"journal\.jsonl:2:1"):
        list(read_journal(tmp_path))


def test_a_metric_that_is_not_a_number_is_null(tmp_path):
    with closing(Journal(tmp_path)) as journal:
        journal.write("interval", metrics={"ne": float("nan"), "copc": float("inf"), "auc": 0.5})
    (event,) = read_journal(tmp_path)
    assert event["metrics"] == {"ne": None, "copc": None, "auc": 0.5}
