"""Servers that share no disk with anybody, as in pods without a volume: checkpoints are made all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.checkpoints import fingerprint
from tests.cluster.running import cluster

INTERVALS = ("runner.0.save_step_interval=60", "runner.0.epochs=2", "runner.0.save_checkpoint_interval=1")


def train(folder: Path, *, are_shared: bool) -> Path:
    """The folder of the run."""
    with cluster(folder, samples=3000) as running:
        # Relative to the folder of the process, which is another one for each.
        own = () if are_shared else ("--snapshots", "snapshots")
        running.pserver("--index", "0", "--pservers", "2", *own)
        running.pserver("--index", "1", *own)
        running.trainer(*INTERVALS)
        running.end()
    return folder / "run"


@pytest.mark.timeout(240)
def test_checkpoints_are_those_of_servers_with_one_disk(tmp_path):
    shared, apart = (train(tmp_path / name, are_shared=name == "shared") for name in ("shared", "apart"))
    assert (shared / "snapshots/committed.json").exists()
    assert not (apart / "snapshots").exists()
    names = [
        "checkpoints/0",
        "checkpoints/1",
        *(f"steps/{each.name}" for each in (shared / "steps").iterdir()),
    ]
    assert len(names) > 2
    for name in names:
        assert fingerprint(apart / name) == fingerprint(shared / name), name
    assert not list(apart.glob(".*")), "what was fetched was left behind"


@pytest.mark.timeout(240)
def test_every_trainer_has_the_last_checkpoint(tmp_path):
    """As where it was written, whichever of them was given that to do."""
    with cluster(tmp_path, samples=3000) as running:
        running.pserver("--index", "0", "--pservers", "2", "--snapshots", "snapshots")
        running.pserver("--index", "1", "--snapshots", "snapshots")
        for number in (0, 1):
            running.trainer(f"runner.0.output_path={tmp_path}/{number}", "runner.0.worker_num=2")
        running.end()
    first, second = (fingerprint(tmp_path / f"{number}/checkpoints/0") for number in (0, 1))
    assert first == second


@pytest.mark.timeout(120)
def test_files_are_as_long_as_the_commit_file_says(tmp_path):
    """Else they would be fetched although they are there."""
    run = train(tmp_path, are_shared=True)
    content = json.loads((run / "snapshots/committed.json").read_text())["content"]
    files = [file for layer in content["snapshot"]["layers"] for file in layer["files"]]
    assert files
    for file in files:
        assert (run / "snapshots" / file["name"]).stat().st_size == file["bytes"]
