"""A run that is killed, however often and wherever, ends as if nothing had happened.

`CLICKMILL_KILLS` sets how often each kind of run is killed at random; `make chaos` sets it high.
"""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path

import pytest

from tests.checkpoints import fingerprint, history
from tests.cluster.process import Command, Crash, command, run

KILLS = int(os.environ.get("CLICKMILL_KILLS", "3"))
SEED = int(os.environ.get("CLICKMILL_SEED", "1"))

KINDS = {
    "one worker": (),
    "two workers, buffer, differences": (
        "phase.0.thread_num=2",
        "dataset.0.shuffle={kind: buffer, rows: 700}",
        "runner.0.save_step_full_interval=3",
    ),
    "three workers, blocks, differences": (
        "phase.0.thread_num=3",
        "dataset.0.shuffle={kind: block, rows: 500, block_bytes: 16384}",
        "runner.0.save_step_full_interval=4",
        "runner.0.save_checkpoint_keep={last: 2, best: 1}",
        "hyper_parameters.optimizer={class: Adam, learning_rate: 0.01, lazy_mode: false}",
        "runner.0.learning_rate_schedule={class: exponential, factor: 0.5, unit: batch, interval: 20}",
    ),
    "gzip, bf16, evicted by show and click": (
        "phase.0.thread_num=2",
        "runner.0.precision=bf16",
        "runner.0.save_step_full_interval=5",
        "hyper_parameters.tables.embedding={eviction: {show_click: {threshold: 0.3}, max_rows: 600}}",
        "dataset.0.data_path=train.gz",
        "dataset.0.shuffle={kind: buffer, rows: 900}",
    ),
    "a user's reader, FTRL": (
        "hyper_parameters.sparse_optimizer={class: FTRL, l1: 0.01}",
        "hyper_parameters.tables.embedding={admission: {kind: probability, p: 0.5}}",
        "dataset.0.data_converter=reader.py",
        "dataset.0.data_path=train.jsonl",
        "dataset.0.validation={data_path: test.jsonl}",
        "dataset.0.shuffle={kind: buffer, rows: 800}",
    ),
    "parquet, Adagrad": (
        "hyper_parameters.optimizer={class: AdamW, learning_rate: 0.01}",
        "hyper_parameters.sparse_optimizer={class: RowWiseAdagrad, learning_rate: 0.05}",
        "phase.0.thread_num=2",
        "dataset.0.format=parquet",
        "dataset.0.data_path=train.parquet",
        "dataset.0.validation={data_path: test.parquet}",
    ),
    "a user's model": (
        "phase.0.thread_num=3",
        "phase.0.model=model.py",
        "runner.0.save_checkpoint_keep={last: 1, best: 0}",
        "runner.0.learning_rate_schedule={class: plateau, patience: 0, min_delta: 0.5}",
        "runner.0.progressive_validation=true",
    ),
}


def train(*overrides: str, resume: bool = False) -> tuple[str, ...]:
    options = [word for override in overrides for word in ("--set", override)]
    return ("train", "-m", "config.yaml", *options, *(["--resume"] if resume else []))


def undisturbed(workplace: Path, *overrides: str) -> Path:
    whole = run(workplace, *train(*overrides, "runner.0.output_path=whole"))
    whole.succeed()
    return workplace / "whole"


def resume_to_the_end(workplace: Path, *overrides: str) -> Command:
    finished = run(workplace, *train(*overrides, resume=True))
    finished.succeed()
    return finished


def assert_equal_runs(whole: Path, killed: Path) -> None:
    assert history(whole) == history(killed)
    for folder in ("checkpoints", "steps"):
        names = sorted(path.name for path in (whole / folder).iterdir())
        assert names == sorted(path.name for path in (killed / folder).iterdir())
        for name in names:
            assert fingerprint(whole / folder / name) == fingerprint(killed / folder / name)
    assert [path.name for path in killed.glob(".*") if path.name != ".lock"] == []


def has_events(run: Path, count: int) -> bool:
    return num_events(run) >= count


def num_events(run: Path) -> int:
    journal = run / "journal.jsonl"
    return journal.read_bytes().count(b"\n") if journal.is_file() else 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_at_random_and_resumed_equals_one_that_was_not(workplace, kind):
    overrides = KINDS[kind]
    whole = undisturbed(workplace, *overrides)
    total = num_events(whole)
    draw = random.Random(f"{SEED} {kind}")
    num_killed = 0
    killed = workplace / "run"
    for number in range(KILLS):
        target = num_events(killed) + draw.randrange(1, max(total // 2, 2))
        with command(workplace, *train(*overrides, resume=number > 0)) as running:
            running.wait_until(partial(has_events, killed, target))
            running.kill()
            code = running.wait()
            assert code in {0, -9}, running.words
            num_killed += code == -9
    assert num_killed > 0
    resume_to_the_end(workplace, *overrides)
    assert_equal_runs(whole, killed)


CHECKPOINT_CRASHES = {
    "when the folder is made": Crash("os.mkdir", "*epoch_0_batch_12.partial-*"),
    "before the state of the trainer": Crash("open", "*epoch_0_batch_12.partial-*/trainer.json"),
    "before the optimizer": Crash("open", "*epoch_0_batch_12.partial-*/optimizer.safetensors"),
    "before the manifest": Crash("open", "*epoch_0_batch_12.partial-*/checkpoint.json"),
    "before it takes its name": Crash("os.rename", "*epoch_0_batch_12.partial-*"),
    "while an older one is removed": Crash("shutil.rmtree", "*epoch_0_batch_6.partial-*"),
    "in the checkpoint of a pass": Crash("os.rename", "*0.partial-*"),
}


@pytest.mark.parametrize("moment", CHECKPOINT_CRASHES)
def test_a_run_killed_while_it_writes_a_checkpoint_goes_on_from_the_one_before(workplace, moment):
    overrides = (
        "phase.0.thread_num=2",
        "runner.0.epochs=1",
        "runner.0.max_batches=20",
        "runner.0.save_checkpoint_keep={last: 1, best: 0}",
    )
    whole = undisturbed(workplace, *overrides)
    killed = run(workplace, *train(*overrides), crash=CHECKPOINT_CRASHES[moment])
    assert killed.wait() == -9, killed.words
    resume_to_the_end(workplace, *overrides)
    assert_equal_runs(whole, workplace / "run")
    leftovers = [path for path in (workplace / "run").rglob(".*") if path.name != ".lock"]
    assert leftovers == []


def test_a_run_killed_during_validation_validates_again(workplace):
    overrides = KINDS["a user's reader, FTRL"]
    whole = undisturbed(workplace, *overrides)
    # The reader opens the validation samples to look at them, at the end of the first pass and of the second.
    killed = run(workplace, *train(*overrides), crash=Crash("open", "test.jsonl", 3))
    assert killed.wait() == -9, killed.words
    assert {event["pass_number"] for event in history(workplace / "run") if event["event"] == "pass_end"} == {
        0
    }
    resume_to_the_end(workplace, *overrides)
    assert_equal_runs(whole, workplace / "run")


def test_a_checkpoint_at_the_very_end_of_a_pass_is_resumed_from(workplace):
    """40 batches: the last fence of a pass stands behind its last batch."""
    overrides = ("runner.0.save_step_interval=8", "runner.0.epochs=1")
    whole = undisturbed(workplace, *overrides)
    killed = run(workplace, *train(*overrides), crash=Crash("os.rename", "*checkpoints/.0.partial-*"))
    assert killed.wait() == -9
    newest = resume_to_the_end(workplace, *overrides)
    assert "epoch_0_batch_40" in newest.words
    assert_equal_runs(whole, workplace / "run")


def test_a_new_run_in_the_folder_of_an_old_one_is_not_resumed_from_the_old_one(workplace):
    run(workplace, *train()).succeed()
    options = ("runner.0.seed=7", "runner.0.save_checkpoint_keep={last: 1, best: 0}")
    with command(workplace, *train(*options)) as running:
        running.wait_until(lambda: "epoch_0_batch_12" in running.words)
        running.kill()
        assert running.wait() in {0, -9}
    resume_to_the_end(workplace, *options)
    whole = undisturbed(workplace, *options)
    assert fingerprint(workplace / "run/checkpoints/1") == fingerprint(whole / "checkpoints/1")
