from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.config import parse_config
from clickmill.launch.pod.outputs import output_overrides

CONFIG = """\
workspace: "./"
mode: train
runner:
- {{name: train, class: train{more}}}
dataset:
- {{name: log, data_path: train.tsv}}
phase:
- {{name: first, model: dnn, dataset_name: log}}
"""


def overrides(more: str = "") -> list[str]:
    config = parse_config(CONFIG.format(more=more))
    return output_overrides(config.runner[0], "runner.0", Path("/output/ctr"))


def test_the_run_is_on_the_volume():
    assert overrides() == ['runner.0.output_path="/output/ctr"']


def test_what_would_be_written_to_the_folder_of_the_pod_goes_to_the_volume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    found = overrides(f', save_checkpoint_path: increment, save_step_path: "{tmp_path}/steps"')
    assert found[1:] == [
        'runner.0.save_checkpoint_path="/output/ctr/increment"',
        'runner.0.save_step_path="/output/ctr/steps"',
    ]


def test_paths_elsewhere_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert len(overrides(", save_checkpoint_path: /models/ctr, tensorboard_path: ../board")) == 1
