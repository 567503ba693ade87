"""A cluster that starts from a checkpoint, and one that evicts, saves and stops by the number of batches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import fingerprint
from tests.cluster.conftest import lay_out
from tests.cluster.fleet import fleet, run_fleet, summary_of
from tests.cluster.parameters import assert_close, parameters
from tests.cluster.process import Command, run

ONE_LANE = (
    "runner.0.epochs=1",
    "runner.0.worker_num=1",
    "runner.0.cluster.lease_bytes=100000000",
    "runner.0.cluster.snapshot_interval_s=1000",
)
"""One trainer reads what one process reads, in the same batches."""
SHOWN = "hyper_parameters.tables.embedding={eviction: {show_click: {threshold: 0.3, decay: 0.9}}}"
CHECKPOINT = "init_model_path=origin/checkpoints/0"
WEIGHTS = "init_pretraining_model_path=origin/checkpoints/0"


def train(place: Path, name: str, *options: str) -> Path:
    """One process; its last checkpoint."""
    settings = (*ONE_LANE, f"runner.0.output_path={name}", *options)
    words = [word for setting in settings for word in ("--set", setting)]
    run(place, "train", "-m", "config.yaml", *words).succeed()
    return place / name / "checkpoints/0"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """A folder with data, a configuration, and the checkpoint of a run of before."""
    own = lay_out(tmp_path_factory.mktemp("origin"), data)
    train(own, "origin", SHOWN)
    return own


def alone(place: Path, name: str, *options: str) -> dict[str, Any]:
    """What one process comes to."""
    return parameters(place, train(place, name, *options), "train.txt")


def together(
    place: Path, name: str, pservers: int, *options: str, kill: tuple[int, ...] = ()
) -> dict[str, Any]:
    """What a cluster comes to, of which servers are killed in the middle, before any snapshot."""
    settings = (*ONE_LANE, f"runner.0.output_path={name}", *options)
    with fleet(place, pservers, 1, *settings, snapshots=f"{name}/snapshots") as own:
        if kill:
            assert own.wait_for_samples(500), own.words
            assert own.committed["snapshot"] is None
            own.kill(*(own.servers[index] for index in kill))
            for index in kill:
                own.start_server(index)
        summary = own.finish()
        assert summary["checkpoint"] == f"{name}/checkpoints/0"
    return parameters(place, place / summary["checkpoint"], "train.txt")


def test_a_cluster_goes_on_from_a_checkpoint_as_one_process_does(place):
    options = (f"runner.0.{CHECKPOINT}", SHOWN)
    expected = alone(place, "alone", *options)
    fresh = alone(place, "fresh", SHOWN)
    assert expected["embedding.rows"][1] == 2 * fresh["embedding.rows"][1], "steps count on"
    assert_close(together(place, "one", 1, *options), expected)
    assert_close(together(place, "three", 3, *options), expected)
    assert_close(together(place, "killed", 3, *options, kill=(1,)), expected)
    assert_close(together(place, "all-killed", 2, *options, kill=(0, 1)), expected)


def test_weights_alone_are_taken_by_other_optimizers(place):
    options = (
        f"runner.0.{WEIGHTS}",
        "hyper_parameters.optimizer={class: Adagrad, learning_rate: 0.01}",
        "hyper_parameters.sparse_optimizer={class: FTRL, l1: 0.001, learning_rate: 0.05}",
    )
    expected = alone(place, "alone-weights", *options)
    assert_close(together(place, "weights-one", 1, *options), expected)
    assert_close(together(place, "weights-killed", 3, *options, kill=(2,)), expected)


def test_what_is_named_is_taken_and_nothing_else(place):
    options = (f"runner.0.{WEIGHTS}", "runner.0.finetuning_aspect_varnames=[embedding]", SHOWN)
    assert_close(together(place, "named", 2, *options), alone(place, "alone-named", *options))


def test_a_snapshot_counts_more_than_the_checkpoint_that_the_run_began_with(place):
    shutil.copytree(place / "origin", place / "gone")
    options = ("runner.0.init_model_path=gone/checkpoints/0", SHOWN)
    expected = alone(place, "alone-gone", *options)
    settings = (*ONE_LANE, *options, "runner.0.cluster.snapshot_interval_s=0.1")
    with fleet(place, 2, 1, *settings, "runner.0.output_path=snapped", snapshots="snapped/snapshots") as own:
        assert own.wait_until(lambda _: own.committed["snapshot"] is not None), own.words
        shutil.rmtree(place / "gone/checkpoints/0/tables")
        own.kill(own.servers[1])
        own.start_server(1)
        summary = own.finish()
    assert_close(parameters(place, place / summary["checkpoint"], "train.txt"), expected)


def error_of(command: Command) -> dict[str, Any]:
    """The error that a command with `--json` has told."""
    line = next(line for line in reversed(command.words.splitlines()) if line.startswith('{"error"'))
    error: dict[str, Any] = json.loads(line)["error"]
    return error


def test_a_checkpoint_that_servers_cannot_reach_ends_the_run_with_words(place):
    shutil.copytree(place / "origin", place / "far")
    options = (*ONE_LANE, "runner.0.output_path=unreached", "runner.0.init_model_path=far/checkpoints/0")
    with fleet(place, 2, 0, *options, SHOWN, snapshots="unreached/snapshots") as own:
        own.kill(own.servers[1])
        trainer = own.start_trainer()
        # It has read what it needs and waits for the other server.
        assert own.wait_until(lambda status: status["units"] > 0), own.words
        rows = place / "far/checkpoints/0/tables/embedding.rows"
        rows.unlink()
        own.start_server(1)
        assert trainer.wait() == 1, own.words
        assert [server.wait() for server in own.servers] == [1, 1], own.words
        error = error_of(trainer)
        assert error["kind"] == "RunFailedError"
        assert "pserver " in error["message"]
        assert str(rows) in error["message"]
        assert "must lie in a folder that all pservers can read" in error["message"]


def test_a_run_that_has_failed_is_not_started_again(place):
    """By the launcher: the verdict of the coordinator is final."""
    settings = (
        *ONE_LANE,
        "runner.0.class=local_cluster_train",
        "runner.0.output_path=failed",
        f"runner.0.{CHECKPOINT}",
        "hyper_parameters.sparse_optimizer={class: FTRL}",
    )
    words = [word for setting in settings for word in ("--set", setting)]
    failed = run(place, "train", "-m", "config.yaml", *words)
    assert failed.wait() == 1, failed.words
    assert "table `embedding`" in failed.words
    assert "started again" not in failed.words


def test_the_run_refuses_to_start_from_what_it_would_replace(place):
    (place / "own/checkpoints").mkdir(parents=True)
    shutil.copytree(place / "origin/checkpoints/0", place / "own/checkpoints/0")
    options = (*ONE_LANE, "runner.0.output_path=own", "runner.0.init_model_path=own/checkpoints/0", SHOWN)
    with fleet(place, 1, 1, *options, snapshots="own/snapshots") as own:
        assert own.members[0].wait() == 2, own.words
        assert "lies where this run writes its own checkpoints" in own.words


# By the number of batches.

COUNTED = (
    "runner.0.evict_interval=7",
    "runner.0.save_step_interval=14",
    "runner.0.max_batches=28",
    SHOWN,
)


def test_rows_are_evicted_and_checkpoints_taken_at_the_batches_of_one_process(place):
    train(place, "alone-counted", *COUNTED)
    expected = {
        each.name: parameters(place, each, "train.txt") for each in (place / "alone-counted/steps").iterdir()
    }
    assert sorted(expected) == ["epoch_0_batch_14", "epoch_0_batch_28"]
    expected["0"] = parameters(place, place / "alone-counted/checkpoints/0", "train.txt")
    kinds = {"one": (1, ()), "three": (3, ()), "killed": (2, (1,))}
    for kind, (pservers, kill) in kinds.items():
        name = f"counted-{kind}"
        seconds = "1000" if kill else "0.05"
        options = (*COUNTED, f"runner.0.cluster.snapshot_interval_s={seconds}")
        found = together(place, name, pservers, *options, kill=kill)
        assert_close(found, expected["0"])
        for step in ("epoch_0_batch_14", "epoch_0_batch_28"):
            assert_close(parameters(place, place / name / "steps" / step, "train.txt"), expected[step])
        events = [json.loads(line) for line in (place / name / "journal.jsonl").read_text().splitlines()]
        saved = [(each["pass_number"], each["batch"]) for each in events if each["event"] == "saved"]
        assert saved[:2] == [(0, 14), (0, 28)]


def test_a_single_process_does_not_resume_where_a_cluster_was_in_a_pass(place):
    together(place, "middle", 1, *COUNTED)
    shutil.rmtree(place / "middle/checkpoints")
    settings = (*ONE_LANE, *COUNTED, "runner.0.output_path=middle")
    words = [word for setting in settings for word in ("--set", setting)]
    refused = run(place, "train", "-m", "config.yaml", "--resume", *words)
    assert refused.wait() == 2, refused.words
    assert "was taken by a cluster in the middle of a pass" in refused.words


TWO_LANES = (
    "runner.0.cluster.lease_bytes=30000",
    "runner.0.evict_interval=3",
    "runner.0.save_step_interval=5",
    "runner.0.max_batches=13",
    SHOWN,
)


def test_who_is_there_does_not_change_what_is_counted(place):
    own, summary = run_fleet(place, 1, 2, *TWO_LANES, "runner.0.output_path=calm", snapshots="calm/snapshots")
    assert summary["batches"] == 2 * 2 * 13, own.words
    options = (*TWO_LANES, "runner.0.output_path=wild")
    with fleet(place, 2, 2, *options, snapshots="wild/snapshots") as other:
        assert other.wait_for_samples(900)
        other.kill(other.members[0])
        other.start_trainer()
        assert other.wait_for_samples(3000)
        other.kill(other.servers[1])
        other.start_server(1)
        assert other.finish()["batches"] == 2 * 2 * 13
    names = [
        "checkpoints/1",
        *(f"steps/epoch_{number}_batch_{batch}" for number in (0, 1) for batch in (5, 10)),
    ]
    for name in names:
        assert fingerprint(place / "wild" / name) == fingerprint(place / "calm" / name), name


@pytest.mark.parametrize("strategy", ["async", "half_async", "hybrid"])
def test_a_pass_ends_after_so_many_batches_in_every_strategy(place, strategy):
    options = (
        f"runner.0.distribute_strategy={strategy}",
        f"runner.0.output_path={strategy}",
        "runner.0.evict_interval=3",
        "runner.0.save_step_interval=5",
        "runner.0.max_batches=12",
    )
    own, summary = run_fleet(place, 2, 2, *options, snapshots=f"{strategy}/snapshots")
    history = own.committed["run"]["history"]
    least, most = (24, 24) if strategy == "hybrid" else (12, 12 + 2 * 3)
    assert all(least <= each["batches"] <= most for each in history), history
    assert [each["train"]["count"] for each in history] == [each["samples"] for each in history]
    assert summary["samples"] == sum(each["samples"] for each in history)
    for number in range(2):
        assert list((place / strategy / "steps").glob(f"epoch_{number}_batch_*")), own.words
    assert summary_of(own.members[0]) == summary


def test_a_trainer_started_by_hand_checks_its_configuration(place):
    words = (
        *("--set", "runner.0.clip_norm=1.0", "--set", "runner.0.save_step_full_interval=3"),
        *("--coordinator", "127.0.0.1:1"),
    )
    refused = run(place, "trainer", "-m", "config.yaml", *words)
    assert refused.wait() == 2, refused.words
    assert "the joint batch of 2 trainers in `sync` has a norm that no one of them knows" in refused.words
    assert "`cluster.snapshot_full_interval`" in refused.words
