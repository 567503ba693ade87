"""From an empty namespace to a model of Criteo's log, with the files of a user and one command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .click_logs import MOUNT, fill
from .conftest import Kubectl
from .submitted import NAME, Job

ROOT = Path(__file__).parents[2]
LOG = (
    Path(os.environ.get("CLICKMILL_DATA", ROOT.parent / "shared" / "data"))
    / "criteo_85k/criteo_sample85k.tsv"
)
CONFIG = """\
workspace: "./"
mode: train
runner:
- {name: train, class: cluster_train, epochs: 1, save_checkpoint_interval: 1, distribute_strategy: async}
- {name: alone, class: train, epochs: 1, save_checkpoint_interval: 1, output_path: alone}
dataset:
- {name: log, format: criteo, data_path: "{workspace}/train_data/train.tsv", batch_size: 125}
phase:
- {name: dnn, model: dnn, dataset_name: log, thread_num: 1}
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.001}
  sparse_feature_dim: 10
  fc_sizes: [400, 400, 400]
"""
BACKEND = """\
backend: Kubernetes
submit: {{job_name: ctr, k8s_trainers: 2, k8s_ps_num: 2}}
kubernetes:
  image: {image}
  namespace: {namespace}
  resources: {{pserver: {{cpu: 100m, memory: 512Mi}}, trainer: {{cpu: 100m, memory: 1Gi}}}}
"""
TOLERANCE = 0.002


@pytest.mark.usefixtures("volcano")
@pytest.mark.timeout(1800)
def test_one_command_trains_to_the_auc_of_a_local_run(
    tmp_path: Path, image: str, namespace: str, kubectl: Kubectl
) -> None:
    if not LOG.exists():
        pytest.skip(f"needs the real log {LOG}; set CLICKMILL_DATA to the folder of real logs")
    job = Job(tmp_path, image, namespace)
    split = ("--by", "hash", "--fraction", "0.2", "--output", "train_data")
    parts = json.loads(job.run("data", "split", str(LOG), *split, "--json"))
    train, test = Path(tmp_path, parts["train"]), Path(tmp_path, parts["test"])
    train = train.rename(train.with_name("train.tsv"))
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "backend.yaml").write_text(BACKEND.format(image=image, namespace=namespace) + MOUNT)
    fill(kubectl, image, train)

    # Half the batch for each of two trainers: as many samples are under way as in one process.
    job.run("train", "-m", "config.yaml", "--set", "mode=alone", "--set", "dataset.0.batch_size=250")
    job.run("submit", "-m", "config.yaml", "-b", "backend.yaml", "--wait")
    fetched = job.job("fetch", "-o", "model")

    def held_out(checkpoint: str) -> float:
        words = ("--checkpoint", checkpoint, "--set", f"dataset.0.data_path={test}", "--json")
        return float(json.loads(job.run("evaluate", "-m", "config.yaml", *words))["auc"])

    here, there = held_out("alone/checkpoints/0"), held_out(fetched["paths"][-1])
    assert there == pytest.approx(here, abs=TOLERANCE)
    status = job.job("status")
    with train.open("rb") as lines:
        assert (status["phase"], status["samples"]) == ("Completed", sum(1 for _ in lines))
    assert NAME in kubectl("get", "vcjob", "-o", "name")
