from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.remote.fixtures import *  # noqa: F403

from clickmill import _core
from clickmill.config import Config, parse_config

CONFIG = """
workspace: "."
mode: train
runner:
- name: train
  class: train
  epochs: 2
  print_interval: 5
  output_path: run
  save_checkpoint_interval: 1
dataset:
- name: log
  format: criteo
  data_path: train.tsv
  validation: {data_path: test.tsv}
  batch_size: 100
  threads: 2
  shuffle: {kind: buffer, rows: 700}
phase:
- name: only
  model: dnn
  dataset_name: log
  thread_num: 2
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.01}
  sparse_feature_dim: 4
  fc_sizes: [16, 8]
"""


@pytest.fixture(scope="session")
def log_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    for name, start, rows in (("train.tsv", 0, 3050), ("test.tsv", 3050, 1000)):
        _core.synth(json.dumps({"path": str(folder / name), "rows": rows, "start_row": start}), None)
    return folder


@pytest.fixture
def workplace(tmp_path: Path, log_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with the small log in it, as the current folder."""
    for name in ("train.tsv", "test.tsv"):
        (tmp_path / name).symlink_to(log_folder / name)
    (tmp_path / "config.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small_config(*overrides: str) -> Config:
    return parse_config(CONFIG, overrides=overrides)
