"""Ranks that train together learn what one process would, and end together.

Every run here compares all parameters of all ranks after every step.
"""

from __future__ import annotations

import gzip
import json
import os
import select
import signal
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from clickmill import _core
from clickmill.train.checkpoint import open_checkpoint
from tests.checkpoints import fingerprint, history
from tests.cluster.conftest import samples, slots_text
from tests.cluster.process import DEADLINE_SECONDS, command, run
from tests.cluster.ranks import ranks, run_ranks
from tests.cluster.test_kill_training import train

SHARDED = "runner.0.cluster.collective_tables=sharded"
BATCH = 100


@pytest.fixture
def shares(workplace: Path) -> Path:
    """One compressed file a rank, the second shorter, and `joint.txt` with their batches in rounds."""
    first, second = samples(1450, seed=1), samples(1130, seed=2)
    for name, rows in (("a", first), ("b", second)):
        with gzip.open(workplace / f"{name}.gz", "wt") as file:
            file.write(good_lines(rows))
    lines = []
    for start in range(0, len(first), BATCH):
        lines += [good_lines(rows[start : start + BATCH]) for rows in (first, second)]
    (workplace / "joint.txt").write_text("".join(lines))
    return workplace


def good_lines(rows: list[dict[str, object]]) -> str:
    lines = slots_text(rows).splitlines(keepends=True)
    return "".join(line for line in lines if "maybe" not in line)


def weights(folder: Path, signs: np.ndarray) -> dict[str, np.ndarray]:
    """Dense parameters, and the rows of `signs`."""
    checkpoint = open_checkpoint(folder)
    rows = {
        name: _core.Table.load(checkpoint.table_files(name)).peek(signs)
        for name in checkpoint.manifest.tables
    }
    return {**load_file(folder / "dense.safetensors"), **rows}


def signs_of(folder: Path) -> np.ndarray:
    """All signs that a run has seen, by the schema of its checkpoint."""
    schema = _core.Schema((folder / "schema.json").read_text())
    config = {
        "files": [str(folder.parents[2] / "joint.txt")],
        "format": {"kind": "slots"},
        "batch_size": 5000,
    }
    batch = _core.Reader(schema, json.dumps(config)).next()
    assert batch is not None
    return np.unique(np.concatenate([batch.signs(group) for group in range(batch.num_groups)]))


KINDS = {
    # A sketch without collisions: each rank has one of its own for the signs that it owns.
    "admitted by count, evicted by age": (
        "hyper_parameters.tables.embedding.eviction={ttl_steps: 6}",
        "hyper_parameters.tables.embedding.admission={kind: count, at: 2, sketch_bits: 20}",
    ),
    "shows and clicks, clipped": (
        "runner.0.clip_norm=0.05",
        "hyper_parameters.tables.embedding={eviction: {show_click: {threshold: 0.01}}}",
    ),
    "two tables, plain Adam": (
        "phase.0.model=deepfm",
        "hyper_parameters.optimizer={class: Adam, learning_rate: 0.01, lazy_mode: false}",
        "hyper_parameters.tables={}",
    ),
}


@pytest.mark.parametrize("placement", ["replicated", "sharded"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_learn_what_one_process_learns_from_their_joint_batches(shares, kind, placement):
    options = (
        "dataset.0.validation={data_path: test.txt}",
        "runner.0.save_step_interval=-1",
        "runner.0.evict_interval=5",
        *KINDS[kind],
    )
    alone = (
        *options,
        "dataset.0.data_path=joint.txt",
        f"dataset.0.batch_size={2 * BATCH}",
        "runner.0.epochs=1",
    )
    run(shares, *train(*alone, "runner.0.output_path=alone", "runner.0.max_batches=11")).succeed()
    together = (*options, "dataset.0.data_path=[a.gz, b.gz]", "runner.0.epochs=1")
    place = f"runner.0.cluster.collective_tables={placement}"
    run_ranks(shares, 2, *train(*together, place, "runner.0.max_batches=11"))
    expected, found = shares / "alone/checkpoints/0", shares / "run/checkpoints/0"
    signs = signs_of(expected)
    one, two = weights(expected, signs), weights(found, signs)
    assert one.keys() == two.keys()
    for name, array in one.items():
        np.testing.assert_allclose(two[name], array, rtol=0, atol=1e-5, err_msg=name)
    assert history(shares / "run")[-2]["samples"] == 11 * 2 * BATCH
    of_one, of_two = history(shares / "alone")[-2], history(shares / "run")[-2]
    for part in ("train", "validation"):
        assert of_two[part] == pytest.approx(of_one[part], abs=1e-4)
    assert of_two["table_rows"] == of_one["table_rows"]


def test_no_sample_is_dropped_where_ranks_run_out_at_different_times(shares):
    options = ("dataset.0.data_path=[a.gz, b.gz]", "runner.0.epochs=2", "phase.0.thread_num=2")
    run_ranks(shares, 2, *train(*options))
    passes = [event for event in history(shares / "run") if event["event"] == "pass_end"]
    assert [event["samples"] for event in passes] == [2580, 2580]
    assert [event["train"]["count"] for event in passes] == [2580, 2580]
    assert [event["validation"]["count"] for event in passes] == [700, 700]


def test_more_ranks_than_files_share_what_there_is(shares):
    options = (
        "dataset.0.data_path=a.gz",
        "runner.0.epochs=1",
        "dataset.0.validation={data_path: test.gz}",
        SHARDED,
    )
    run_ranks(shares, 3, *train(*options))
    assert history(shares / "run")[-2]["samples"] == 1450


def test_sharded_rows_give_the_bits_of_replicated_ones_and_bad_lines_are_counted_once(workplace):
    run_ranks(workplace, 2, *train("hyper_parameters.tables={}", "runner.0.output_path=whole"))
    run_ranks(workplace, 2, *train("hyper_parameters.tables={}", SHARDED))
    whole, shared = (
        fingerprint(workplace / "whole/checkpoints/1"),
        fingerprint(workplace / "run/checkpoints/1"),
    )
    assert shared == whole
    ends = [event for event in history(workplace / "run") if event["event"] == "pass_end"]
    assert [event["bad_lines"] for event in ends] == [41, 41]
    # One process scores the joined tables as the ranks did.
    evaluated = run(workplace, "evaluate", "-m", "config.yaml", "--json")
    evaluated.succeed()
    found = json.loads(evaluated.words.splitlines()[-1])
    assert found["auc"] == pytest.approx(ends[-1]["validation"]["auc"], abs=1e-9)
    assert found["samples"] == 700


@pytest.mark.parametrize("placement", ["replicated", "sharded"])
def test_a_rank_that_is_killed_ends_all_and_the_run_goes_on_from_its_checkpoint(workplace, placement):
    options = (
        f"runner.0.cluster.collective_tables={placement}",
        "hyper_parameters.tables={}",
        "dataset.0.shuffle={kind: buffer, rows: 300}",
    )
    run_ranks(workplace, 2, *train(*options, "runner.0.output_path=whole"))
    with ranks(workplace, 2, *train(*options)) as (first, second):
        assert first.wait_until(lambda: "epoch_0_batch_12" in first.words)
        second.kill(signal.SIGKILL)
        assert first.wait() == 1, first.words
        assert "error: rank 0 of 2 could not" in first.words
        assert "--resume" in first.words
        assert "Traceback" not in first.words
    run_ranks(workplace, 2, *train(*options, resume=True))
    assert fingerprint(workplace / "run/checkpoints/1") == fingerprint(workplace / "whole/checkpoints/1")
    assert history(workplace / "run") == history(workplace / "whole")


def local(*options: str, resume: bool = False) -> tuple[str, ...]:
    return train(
        "runner.0.class=local_cluster_train",
        "runner.0.fleet_mode=collective",
        "runner.0.worker_num=2",
        *options,
        resume=resume,
    )


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_one_command_starts_all_ranks_and_leaves_none_behind(workplace, number, code):
    with command(workplace, *local("runner.0.epochs=200")) as running:
        assert running.wait_until(lambda: "epoch_0_batch_12" in running.words), running.words
        others = children(running.pid)
        assert others
        running.kill(number)
        assert running.wait() == code, running.words
        assert "Traceback" not in running.words
        assert all(ends(pid) for pid in others)


def ends(pid: int) -> bool:
    """Whether a process ends before the harness loses its patience; one that is gone has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([descriptor], [], [], DEADLINE_SECONDS)
    os.close(descriptor)
    return bool(ready)


def test_an_error_of_another_rank_is_told_with_its_number(workplace):
    text = (workplace / "train.txt").read_text()
    (workplace / "worse.txt").write_text(text + "click:maybe\n" * 10)
    stopped = run(workplace, *local("dataset.0.data_path=worse.txt", "dataset.0.max_bad_lines=25"))
    assert stopped.wait() == 3, stopped.words
    assert "error: worker 1: " in stopped.words
    assert "worker-1.log" in stopped.words
    assert "Traceback" not in stopped.words


def test_one_command_goes_on_from_the_checkpoint_of_all_ranks(workplace):
    run(workplace, *local("runner.0.epochs=1")).succeed()
    run(workplace, *local("runner.0.epochs=2", resume=True)).succeed()
    events = history(workplace / "run")
    assert [event["pass_number"] for event in events if event["event"] == "pass_end"] == [0, 1]


def test_bad_lines_of_all_ranks_count_together(workplace):
    # 41 in all: neither rank has more than 25 of them.
    with ranks(workplace, 2, *train("dataset.0.max_bad_lines=25")) as running:
        assert [each.wait() for each in running] == [3, 3], running[0].words
        assert "41 bad lines in the samples of all ranks; allowed: 25" in running[0].words
