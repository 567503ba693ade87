"""clickmill with the dense net on a card and rows in the memory of the host.

`--source text` reads the raw log as `clickmill train` does; `--source memory` trains on batches that were
read before, so that only rows, copies and the net are in the time. The first steps are not.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from measure import Stopwatch, cpu_seconds, report

from clickmill import _core
from clickmill.config import parse_config
from clickmill.train.observer import Observer
from clickmill.train.run import Run

CONFIG = """
workspace: "."
mode: train
debug: true
runner:
- name: train
  class: train
  device: gpu
  epochs: 1
  print_interval: {interval}
  precision: {precision}
  output_path: "{folder}/run"
dataset:
- {{name: train, format: criteo, data_path: "{train}", batch_size: {batch}, threads: {threads}}}
phase:
- {{name: only, model: {model}, dataset_name: train, thread_num: {workers}}}
hyper_parameters:
  optimizer: {{class: Adam, learning_rate: 0.001}}
  sparse_feature_dim: 10
  fc_sizes: [400, 400, 400]
"""


class Clock(Observer):
    """Time and samples after the first `skip` steps."""

    def __init__(self, skip: int) -> None:
        self.skip = skip
        self.steps = self.samples = 0
        self.watch = Stopwatch()
        self.start = (0.0, 0.0)

    def advance(self, samples: int, bytes_done: int) -> None:
        del bytes_done
        self.steps += 1
        now = (time.perf_counter(), cpu_seconds())
        if self.steps == self.skip:
            self.start = now
        elif self.steps > self.skip:
            self.samples += samples
            self.watch.wall_s, self.watch.cpu_s = now[0] - self.start[0], now[1] - self.start[1]


class Stages(logging.Handler):
    """Adds up the lines that `debug: true` logs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.seconds: Counter[str] = Counter()
        self.lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("stages"):
            self.lines += 1
            # The first interval holds the first step alone, the second the warm-up.
            if self.lines > 2:
                for name, seconds in re.findall(r"(\w+)=(\d+\.\d+)", text.split("seconds:")[1]):
                    self.seconds[name] += float(seconds)


class Memory:
    """Batches that were read before."""

    def __init__(self, batches: list[Any]) -> None:
        self.batches = iter(batches)

    def next(self) -> Any:
        return next(self.batches, None)

    def progress(self) -> tuple[int, int]:
        return 0, 0

    def bad_lines(self) -> str:
        return '{"count": 0, "first": []}'

    def absent_slots(self) -> list[str]:
        return []

    def close(self) -> None:
        pass


class MemoryRun(Run):
    def _open_pass(self, pass_number: int, position: str | None) -> Any:
        source = super()._open_pass(pass_number, position)
        batches = []
        while (batch := source.next()) is not None:
            batches.append(batch)
        source.close()
        return Memory(batches)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], required=True)
    parser.add_argument("--source", choices=["text", "memory"], required=True)
    parser.add_argument("--batch", type=int, default=65_536)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--skip", type=int, default=6)
    options = parser.parse_args()
    stages = Stages()
    logger = logging.getLogger("clickmill")
    logger.addHandler(stages)
    logger.setLevel(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        text = CONFIG.format(folder=folder, interval=options.skip - 1, **vars(options))
        config = parse_config(text)
        runner = config.runners()[0]
        clock = Clock(options.skip)
        kind = MemoryRun if options.source == "memory" else Run
        summary = kind(config, runner, config.phases_of(runner)[0], [clock]).train()
        rows = Path(folder, "run/checkpoints/0/tables/embedding.rows").stat().st_size
    steps = clock.steps - clock.skip
    versions = {"clickmill": json.loads(_core.build_info())["version"], "torch": torch.__version__}
    report(
        clock.samples,
        clock.watch,
        ms_a_step=round(1000 * clock.watch.wall_s / steps, 2),
        stages_ms={name: round(1000 * seconds / steps, 2) for name, seconds in stages.seconds.items()},
        auc=round(summary["train"]["auc"], 4),
        table_mb=round(rows / 1e6),
        versions=versions,
    )


if __name__ == "__main__":
    main()
