"""Memory is bounded by batches, windows and tables, not by the length of the log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clickmill import _core
from tests.cluster.process import run

CONFIG = """
workspace: "."
mode: train
runner:
- {name: train, class: train, output_path: run, print_interval: 100, save_step_interval: 100}
dataset:
- {name: log, format: criteo, data_path: log.tsv, batch_size: 500}
phase:
- {name: only, model: lr, dataset_name: log, thread_num: 2}
hyper_parameters:
  sparse_feature_number: 2000
"""

SHORT, LONG = 25_000, 250_000
ALLOWED_BYTES = 24 << 20


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Logs by their number of rows."""
    made = {rows: tmp_path_factory.mktemp("logs") / "log.tsv" for rows in (SHORT, LONG)}
    for rows, path in made.items():
        _core.synth(json.dumps({"path": str(path), "rows": rows}), None)
    return made


@pytest.fixture
def peaks(tmp_path: Path, logs: dict[int, Path]):
    """Peak memory of a run over so many rows, and the bytes of its log."""
    (tmp_path / "config.yaml").write_text(CONFIG)

    def measure(rows: int, *overrides: str) -> tuple[int, int]:
        log = tmp_path / "log.tsv"
        log.unlink(missing_ok=True)
        log.symlink_to(logs[rows])
        options = [word for override in overrides for word in ("--set", override)]
        finished = run(tmp_path, "train", "-m", "config.yaml", *options)
        finished.succeed()
        return finished.peak_bytes, log.stat().st_size

    return measure


@pytest.mark.parametrize("shuffle", ["none", "{kind: block, rows: 4000, block_bytes: 65536}"])
def test_a_log_of_ten_times_the_length_takes_no_more_memory(peaks, shuffle):
    short, short_bytes = peaks(SHORT, f"dataset.0.shuffle={shuffle}")
    long, long_bytes = peaks(LONG, f"dataset.0.shuffle={shuffle}")
    # The test can fail: a log that were held in memory would show.
    assert long_bytes - short_bytes > 2 * ALLOWED_BYTES
    assert long - short < ALLOWED_BYTES, f"{short} bytes for {SHORT} rows, {long} bytes for {LONG}"


def test_the_window_of_a_shuffle_is_what_costs_memory(peaks):
    """So that the bound above is known to measure something."""
    small, _ = peaks(LONG, "dataset.0.shuffle={kind: buffer, rows: 1000}")
    large, _ = peaks(LONG, "dataset.0.shuffle={kind: buffer, rows: 200000}")
    assert large - small > ALLOWED_BYTES
