"""clickmill on one machine: two workers, the raw log, the trainer as `clickmill train` runs it.

In the time: opening the files, reading, parsing, hashing, deduplication, rows, forward, backward, update,
running metrics. Not in it: imports, initial dense parameters, the checkpoint at the end, evaluation.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from measure import Stopwatch, cpu_seconds, report

from clickmill import _core
from clickmill.config import parse_config
from clickmill.train.api import evaluate
from clickmill.train.observer import Observer
from clickmill.train.run import Run

if TYPE_CHECKING:
    from clickmill.train.observer import RunStart

CONFIG = """
workspace: "."
mode: train
runner:
- name: train
  class: train
  epochs: 1
  print_interval: 100
  precision: {precision}
  output_path: "{folder}/run"
dataset:
- {{name: train, format: criteo, data_path: {train}, batch_size: 1000, threads: {threads}}}
- {{name: test, format: criteo, data_path: ["{test}"], batch_size: 1000}}
phase:
- {{name: dnn, model: dnn, dataset_name: train, thread_num: {workers}}}
hyper_parameters:
  optimizer: {{class: Adam, learning_rate: 0.001}}
  sparse_feature_dim: 10
  fc_sizes: [400, 400, 400]
"""


class Clock(Observer):
    """From the start of the run to the last update."""

    def __init__(self) -> None:
        self.watch = Stopwatch()
        self.samples = 0

    def run_start(self, event: RunStart) -> None:
        del event
        self.start = (time.perf_counter(), cpu_seconds())

    def advance(self, samples: int, bytes_done: int) -> None:
        del bytes_done
        self.samples += samples
        self.watch.wall_s = time.perf_counter() - self.start[0]
        self.watch.cpu_s = cpu_seconds() - self.start[1]


def warm_up(precision: str) -> None:
    """The first step of a process builds what later ones reuse; the other peers warm up, too."""
    net = torch.nn.Sequential(torch.nn.Linear(273, 400), torch.nn.ReLU(), torch.nn.Linear(400, 1))
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = net(torch.zeros(1000, 273)).float().square().mean()
        loss.backward()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", nargs="+", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warm_up(options.precision)
    with tempfile.TemporaryDirectory() as folder:
        text = CONFIG.format(
            folder=folder,
            train=json.dumps(options.train),
            test=options.test,
            precision=options.precision,
            workers=options.workers,
            threads=options.threads,
        )
        config = parse_config(text)
        runner = config.runners()[0]
        clock = Clock()
        summary = Run(config, runner, config.phases_of(runner)[0], [clock]).train()
        result = evaluate(config, checkpoints=[Path(summary["checkpoint"])], dataset="test")
    if clock.samples != options.samples:
        raise SystemExit(f"trained on {clock.samples} samples, the files should hold {options.samples}")
    versions = {"clickmill": json.loads(_core.build_info())["version"], "torch": torch.__version__}
    report(clock.samples, clock.watch, auc=round(result["exact_auc"], 5), versions=versions)


if __name__ == "__main__":
    main()
