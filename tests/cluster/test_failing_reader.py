"""A user's reader that fails ends the run once, with its file and line, in one process as in a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.process import run

CONFIG = """\
workspace: "."
mode: train
runner:
- {name: train, class: CLASS, server_num: 1, worker_num: 1, output_path: run, distribute_strategy: async}
dataset:
- name: log
  data_path: train.txt
  data_converter: reader.py
  batch_size: 2
  schema: {slots: [{kind: label, name: click}, {kind: sparse, name: user}]}
phase:
- {name: only, model: dnn, dataset_name: log}
hyper_parameters: {sparse_feature_dim: 4, fc_sizes: [8]}
"""

CANNOT_BE_MADE = """
class Reader:
    def __init__(self, files):
        self.files = files[7]

    def __iter__(self):
        return iter([])
"""

EXITS = """
import sys


class Reader:
    def __iter__(self):
        for number in range(3000):
            yield {"click": number % 2, "user": "u"}
        sys.exit(7)
"""


@pytest.mark.parametrize("class_name", ["train", "local_cluster_train"])
@pytest.mark.parametrize(
    ("text", "code", "cause", "line"),
    [
        ("\nimport jsonn\n", 2, "cannot be imported: ModuleNotFoundError: No module named 'jsonn'", 2),
        (CANNOT_BE_MADE, 3, "before its first sample of `train.txt`: IndexError: list index out of range", 4),
        (EXITS, 3, "failed after 3000 samples of `train.txt`: SystemExit: 7", 9),
    ],
    ids=["module", "made", "exits"],
)
def test_a_reader_that_fails_is_told_once_and_not_tried_again(
    tmp_path: Path, class_name, text, code, cause, line
):
    (tmp_path / "config.yaml").write_text(CONFIG.replace("CLASS", class_name))
    (tmp_path / "train.txt").write_text("a sample\n")
    (tmp_path / "reader.py").write_text(text)
    done = run(tmp_path, "train", "-m", "config.yaml")
    assert done.wait() == code, done.words
    assert cause in done.words.splitlines()[-2]
    assert f"raised in `{tmp_path}/reader.py`, line {line}" in done.words.splitlines()[-1]
    assert "Traceback" not in done.words
    assert "started again" not in done.words
