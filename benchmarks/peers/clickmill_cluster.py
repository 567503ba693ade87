"""clickmill's parameter server on loopback: `clickmill train` with `class: local_cluster_train`, the raw log.

In the time: what the summary of the run calls its seconds, those of the training pass. Not in it: start of
the processes, the checkpoint at the end, evaluation, which is done here, exactly, from that checkpoint.
CPU seconds and peak memory are those of all processes together, CPU seconds of the same span of time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Stopwatch, report
from process_usage import TreeUsage
from processes import end_with_starter

from clickmill import _core
from clickmill.config import load_config
from clickmill.train.api import evaluate

CONFIG = """
workspace: "."
mode: train
runner:
- name: train
  class: local_cluster_train
  worker_num: {trainers}
  server_num: {servers}
  distribute_strategy: {strategy}
  cluster: {{geo_step: {geo_step}}}
  epochs: 1
  print_interval: 100
  precision: {precision}
  output_path: "{folder}/run"
dataset:
- {{name: train, format: criteo, data_path: {train}, batch_size: {batch_size}, threads: 1}}
- {{name: test, format: criteo, data_path: ["{test}"], batch_size: 1000}}
phase:
- {{name: dnn, model: dnn, dataset_name: train, thread_num: {threads}}}
hyper_parameters:
  optimizer: {{class: Adam, learning_rate: 0.001}}
  sparse_feature_dim: 10
  fc_sizes: [400, 400, 400]
"""
LOOK_INTERVAL_S = 0.25
END_DEADLINE_S = 30


def train(config: Path, deadline_s: float) -> tuple[dict[str, Any], TreeUsage]:
    """The summary that the command prints, and what all of its processes used."""
    command = [sys.executable, "-m", "clickmill", "train", "-m", str(config), "--json"]
    output, log = config.with_name("summary.json"), config.with_name("train.log")
    with output.open("wb") as stdout, log.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=end_with_starter,  # noqa: PLW1509 (this process has no other thread)
        )
    used, deadline = TreeUsage(process.pid), time.monotonic() + deadline_s
    try:
        while process.poll() is None:
            if time.monotonic() > deadline:
                sys.exit(f"error: training did not end in {deadline_s:.0f} s\n{log.read_text()[-3000:]}")
            used.look()
            time.sleep(LOOK_INTERVAL_S)
    finally:
        end(process)
    if process.returncode != 0:
        sys.exit(f"error: `clickmill train` ended with {process.returncode}\n{log.read_text()[-3000:]}")
    (summary,) = json.loads(output.read_text())
    return summary, used


def pass_end_time(run: Path) -> float:
    """When the one pass of the run ended, as its journal has it."""
    events = map(json.loads, (run / "journal.jsonl").read_text().splitlines())
    (found,) = (float(event["time"]) for event in events if event["event"] == "pass_end")
    return found


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends what still runs: the command may end its cluster in order, then its session goes as a whole."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(END_DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--train", nargs="+", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--strategy", choices=["async", "half_async", "sync", "geo", "hybrid"], required=True)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--trainers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="workers of each trainer")
    parser.add_argument("--geo-step", type=int, default=100, help="batches between two exchanges (geo)")
    parser.add_argument("--batch-size", type=int, default=1000, help="of each trainer")
    parser.add_argument("--deadline-s", type=float, default=600)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        values = {**vars(options), "train": json.dumps(options.train), "folder": folder}
        path = Path(folder) / "config.yaml"
        path.write_text(CONFIG.format(**values))
        summary, used = train(path, options.deadline_s)
        wall_s, end_s = summary["seconds"], pass_end_time(Path(summary["run"]))
        if wall_s <= 0:
            sys.exit(f"error: the summary names no time of the pass: {json.dumps(summary)}")
        watch = Stopwatch(wall_s, used.cpu_seconds(end_s - wall_s, end_s))
        if summary["samples"] != options.samples:
            sys.exit(f"error: trained on {summary['samples']} samples, the files hold {options.samples}")
        result = evaluate(load_config(path), checkpoints=[Path(summary["checkpoint"])], dataset="test")
    report(
        summary["samples"],
        watch,
        auc=round(result["exact_auc"], 5),
        versions={"clickmill": json.loads(_core.build_info())["version"]},
        peak_rss_mb=round(used.peak_rss_mb, 1),
    )


if __name__ == "__main__":
    main()
