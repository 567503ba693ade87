"""A slot that never occurs is told of before training, or at least nothing that was learnt is lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.checkpoints import fingerprint
from tests.unit.train.conftest import small_config

from clickmill.data import presence, records
from clickmill.errors import AbsentSlotError
from clickmill.train.api import train

NUM_SAMPLES = 450

TEXT = (
    "dataset.0={name: log, format: slots, data_path: log.txt, sparse_slots: 'click user ghost', "
    "batch_size: 50%s}"
)
READER = """
from pathlib import Path


class Reader:
    def __init__(self, files):
        self._lines = Path(files[0]).read_text().splitlines()

    def __iter__(self):
        for line in self._lines:
            yield dict(word.split(":") for word in line.split())
"""
OWN_READER = TEXT % ", data_converter: reader.py"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"click:{number % 2} user:{number % 7}\n" for number in range(NUM_SAMPLES)]
    Path("log.txt").write_text("".join(lines))
    # Text is read in blocks of megabytes: long lines, so that the slot is not in the first one.
    long_lines = [f"unused:{'x' * 10_000} {line}" for line in lines]
    Path("late.txt").write_text("".join(long_lines) + "click:1 user:1 ghost:1\n")
    Path("reader.py").write_text(READER)
    return tmp_path


def run(*overrides: str, resume: bool = False) -> list[dict[str, object]]:
    return train(small_config(*overrides), resume=resume)


def test_a_slot_that_never_occurs_stops_a_run_before_its_first_batch(caplog):
    with pytest.raises(AbsentSlotError, match="slot `ghost`: column `ghost` never occurs in the data"):
        run(TEXT % "")
    assert "TRAIN -->" not in caplog.text
    assert not Path("run/checkpoints").exists()


def test_a_column_that_no_parquet_file_has_stops_a_run_before_its_first_batch(caplog):
    clicks = [number % 2 for number in range(NUM_SAMPLES)]
    pq.write_table(pa.table({"click": clicks, "user": list(range(NUM_SAMPLES))}), "log.parquet")
    options = ("dataset.0.format=parquet", "dataset.0.data_path=log.parquet")
    with pytest.raises(AbsentSlotError, match=f"key `ghost` never occurs in {NUM_SAMPLES} records"):
        run(TEXT % "", *options)
    assert "TRAIN -->" not in caplog.text


def test_a_slot_that_validation_lacks_stops_a_run_before_its_first_batch(caplog):
    with pytest.raises(AbsentSlotError, match="slot `ghost`"):
        run(TEXT % ", validation: {data_path: log.txt}", "dataset.0.data_path=late.txt")
    assert "TRAIN -->" not in caplog.text


def test_a_slot_that_comes_late_is_warned_of_and_found(monkeypatch, caplog):
    monkeypatch.setattr(presence, "FEW_SAMPLES", 100)
    (summary,) = run(TEXT % "", "dataset.0.data_path=late.txt", "runner.0.epochs=1")
    assert summary["step"] == 10
    (warning,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert "slot `ghost`: no value in the first 100 samples of `log`" in warning.message


def test_a_short_trial_run_only_warns(monkeypatch, caplog):
    monkeypatch.setattr(presence, "FEW_SAMPLES", 100)
    (summary,) = run(TEXT % "", "runner.0.max_batches=2", "runner.0.epochs=1")
    assert summary["step"] == 2
    assert "is its name right?" in caplog.text


def test_what_a_users_reader_taught_is_saved_before_the_error(monkeypatch, caplog):
    """A user's reader is not read twice: its slots are known only when the pass has been trained on."""
    monkeypatch.setattr(records, "FEW_SAMPLES", 100)
    options = (OWN_READER, "runner.0.epochs=2")
    with pytest.raises(AbsentSlotError, match=f"key `ghost` never occurs in {NUM_SAMPLES} records"):
        run(*options)
    assert "slot `ghost`: no value in the first" in caplog.text
    assert [path.name for path in Path("run/steps").iterdir()] == ["epoch_0_batch_9"]

    lax = (*options, "dataset.0.require_slots=false")
    run(*lax, resume=True)
    run(*lax, "runner.0.output_path=whole")
    assert fingerprint(Path("run/checkpoints/1")) == fingerprint(Path("whole/checkpoints/1"))


def test_a_checkpoint_of_the_last_batch_is_not_written_twice():
    with pytest.raises(AbsentSlotError):
        run(OWN_READER, "runner.0.save_step_interval=3", "runner.0.save_step_full_interval=2")
    assert sorted(path.name for path in Path("run/steps").iterdir()) == [
        "epoch_0_batch_3",
        "epoch_0_batch_6",
        "epoch_0_batch_9",
    ]
    run(OWN_READER, "runner.0.save_step_interval=3", "dataset.0.require_slots=false", resume=True)
