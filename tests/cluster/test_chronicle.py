"""What a cluster tells of its run, in `journal.jsonl` and to `clickmill report`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from clickmill.launch.role import OWN_LOG_VARIABLE
from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.journal import read_journal, read_lines
from clickmill.train.report import write_report
from tests.cluster.fleet import run_fleet
from tests.cluster.running import Running, cluster


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


@pytest.mark.parametrize("has_own_log", [False, True])
def test_every_trainer_with_a_log_of_its_own_tells_how_it_goes(cluster_place, has_own_log):
    options = ("runner.0.print_interval=5", "runner.0.epochs=1")
    own, _ = run_fleet(
        cluster_place, 1, 2, *options, environment={OWN_LOG_VARIABLE: "1"} if has_own_log else {}
    )
    lines = [member.words.count("TRAIN --> pass: 0 batch: ") for member in own.members]
    assert sum(map(bool, lines)) == 1 + has_own_log
    steps = [interval["step"] for interval in told(cluster_place, "interval")]
    assert len(set(steps)) == len(steps), "one of them writes the journal"
    assert len(steps) in lines
    assert sum(member.words.count("pass_id: 0, ") for member in own.members) == 1


def test_the_summary_counts_the_seconds_of_all_passes(tmp_path):
    with cluster(tmp_path, samples=1000) as running:
        start(running)
        running.end()
        (line,) = (line for line in running.trainers[0].words.splitlines() if line.startswith('{"run"'))
    summary, ends = json.loads(line), told(tmp_path, "pass_end")
    assert [end["samples"] for end in ends] == [1000, 1000]
    assert summary["samples"] == sum(end["samples"] for end in ends)
    assert summary["seconds"] == pytest.approx(sum(end["seconds"] for end in ends))


def start(running: Running) -> None:
    running.pserver("--index", "0", "--pservers", "2")
    running.pserver("--index", "1")
    running.trainer("runner.0.epochs=2", arguments=("--json",))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("killed", ["a server", "everything"])
def test_a_pass_that_was_undone_is_told_once(tmp_path, killed):
    snapshots, aside = tmp_path / "run/snapshots", tmp_path / "aside"
    with cluster(tmp_path, pause=0.02) as running:
        start(running)
        running.wait_for(lambda status: status["batches"] > 10)
        running.admin.snapshot(print)
        # The end of the pass cannot be kept.
        snapshots.rename(aside)
        snapshots.touch()
        status = running.wait_for(lambda status: status["pass"] == 1)
        lost = [*running.trainers, *running.pservers] if killed == "everything" else running.pservers[1:]
        for each in lost:
            each.kill()
            each.wait()
        running.trainers = [each for each in running.trainers if each not in lost]
        running.pservers = [each for each in running.pservers if each not in lost]
        snapshots.unlink()
        aside.rename(snapshots)
        if running.pservers:
            running.pserver("--index", "1")
        else:
            running.address = ""
            start(running)
        running.wait_for(lambda now: now["epoch"] > status["epoch"] and now["phase"] == "running")
        running.hurry()
        running.end()
    ends = [event["pass_number"] for event in read_lines(tmp_path / "run") if event["event"] == "pass_end"]
    assert ends == [0, 0, 1], "the end of the first pass was undone"
    assert [event["pass_number"] for event in told(tmp_path, "pass_end")] == [0, 1]
    steps = [event["step"] for event in read_journal(tmp_path / "run") if event["event"] == "interval"]
    assert all(first < second for first, second in itertools.pairwise(steps))
    assert "<b>2</b><span>passes</span>" in write_report(tmp_path / "run").read_text()
