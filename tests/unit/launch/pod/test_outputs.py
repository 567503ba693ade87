from __future__ import annotations

from pathlib import Path

import pytest

from clickmill.config import parse_config
from clickmill.errors import ConfigError
from clickmill.launch.pod.launcher import Launcher
from clickmill.launch.pod.outputs import output_overrides
from clickmill.launch.pod.pod import read_pod
from clickmill.launch.role import Source

from .conftest import ENVIRON

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


@pytest.mark.parametrize(
    "url", ["s3://models/today", "S3A://models/today", "hdfs:/today", "afs:///today", "http://files/today"]
)
def test_checkpoints_that_go_elsewhere_are_not_taken_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG.format(more=""))
    typed = (f"runner.0.save_checkpoint_path={url}", f"runner.0.save_step_path={url}/steps")
    launcher = Launcher(Source("config.yaml", typed), tmp_path / "output", tmp_path / "package")
    _, runner, source = launcher._configured(read_pod(ENVIRON))
    assert (runner.save_checkpoint_path, runner.save_step_path) == (url, f"{url}/steps")
    assert runner.output_path == str(tmp_path / "output")
    assert source.overrides[:2] == typed


def test_what_must_be_a_path_is_no_url_in_a_pod_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG.format(more=", tensorboard_path: s3://models/board"))
    launcher = Launcher(Source("config.yaml"), tmp_path / "output", tmp_path / "package")
    with pytest.raises(ConfigError, match="is a URL, and must be a path of this host"):
        launcher._configured(read_pod(ENVIRON))
