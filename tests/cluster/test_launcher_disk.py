"""A run whose folder is on a full disk: training goes on, and the end says who had no room."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clickmill import _core
from tests.cluster.full_disk import SmallDisk, on_small_disk, why_not
from tests.cluster.launched import LAUNCHER, Stage, launched, write_config
from tests.cluster.test_launched_training import CLICKMILL
from tests.cluster.test_launched_training import write_config as write_training
from tests.cluster.test_local_cluster import TRAIN, is_up

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

NUM_LINES = 200
"""More than what is left of the page that a log has already."""


@pytest.fixture
def held(tmp_path: Path) -> Stage:
    folder = tmp_path / "stage"
    folder.mkdir()
    stage = Stage(folder)
    stage.write("workers", 2)
    stage.write("hold")
    stage.write("words", NUM_LINES)
    write_config(tmp_path, "local_cluster_train")
    return stage


def test_a_log_that_cannot_be_written_does_not_end_the_run(tmp_path, held):
    with launched(tmp_path, held, *on_small_disk("run", 256, *TRAIN)) as run:
        run.wait_until(lambda: is_up(held))
        SmallDisk(run.process.pid, tmp_path / "run").fill()
        held.release()
        assert run.wait() == 0, run.words
    for index in range(2):
        warning = f"warning: cannot write to `run/logs/trainer-{index}.log`: No space left on device"
        assert run.words.count(warning) == 1
        assert run.words.count(f"trainer {index} | line ") == NUM_LINES


def test_a_run_that_cannot_begin_for_want_of_room_names_the_file_and_the_way_out(tmp_path, held):
    script = "head -c 1M /dev/zero > run/filler 2>/dev/null; exec " + " ".join(LAUNCHER)
    command = ("sh", "-c", f"{script} train -m config.yaml --json")
    with launched(tmp_path, held, *on_small_disk("run", 64, *command)) as run:
        assert run.wait() == 1, run.words
    error = json.loads(run.words.splitlines()[-1])["error"]
    assert "`run/" in error["message"]
    assert "No space left on device" in error["message"]
    assert "free some space" in error["hint"]


def test_a_last_snapshot_without_room_is_blamed_on_a_server_that_had_none(tmp_path):
    _core.synth(json.dumps({"path": str(tmp_path / "train.tsv"), "rows": 4000}), None)
    write_training(tmp_path, "local_cluster_train")
    command = (*CLICKMILL, "train", "-m", "config.yaml", "--json")
    with launched(tmp_path, Stage(tmp_path), *on_small_disk("run", 256, *command)) as run:
        assert run.wait() == 1, run.words
    error = json.loads(run.words.splitlines()[-1])["error"]
    words, blamed, reason = error["message"].partition("pserver ")
    assert words.removeprefix("the run has ended: ") == "the last snapshot could not be committed: "
    assert "No space left on device" in reason
    assert f"the log of {blamed}{reason[0]} is `run/logs/pserver-{reason[0]}.log`" in error["hint"]
    assert "free some space and go on with `--resume`" in error["hint"]
