"""What a cluster tells of its run, in `journal.jsonl` and to `clickmill report`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.journal import read_journal
from tests.cluster.fleet import run_fleet


def told(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Events of a kind, in the order in which they count."""
    return [event for event in read_journal(folder / "run") if event["event"] == kind]


@pytest.mark.parametrize("strategy", ["sync", "async"])
def test_intervals_passes_and_checkpoints_count_the_same_steps(cluster_place, strategy):
    options = (f"runner.0.distribute_strategy={strategy}", "runner.0.print_interval=5")
    _, summary = run_fleet(cluster_place, 1, 2, *options)
    ends = [end["step"] for end in told(cluster_place, "pass_end")]
    for interval in told(cluster_place, "interval"):
        begin = ends[interval["pass_number"] - 1] if interval["pass_number"] else 0
        assert begin < interval["step"] <= ends[interval["pass_number"]]
    assert all(first < second for first, second in itertools.pairwise(ends))
    assert ends[-1] == open_checkpoint(cluster_place / summary["checkpoint"]).manifest.step
