from __future__ import annotations

from contextlib import closing

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
