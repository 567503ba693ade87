"""Tables whose rows start anew with each pass."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.unit.train.conftest import small_config
from tests.unit.train.test_run import fingerprint, remove, remove_after

from clickmill.config import Config
from clickmill.ps.tables import TableSet
from clickmill.train.api import train
from clickmill.train.checkpoint import open_checkpoint

pytestmark = pytest.mark.usefixtures("workplace")

SIGNS = np.arange(1, 9, dtype=np.uint64)


def restarting_config(*overrides: str) -> Config:
    return small_config("hyper_parameters.tables={embedding: {restart_each_pass: true}}", *overrides)


def table_json(name: str, weight_decay: float = 0.0) -> str:
    spec = {"name": name, "dim": 4, "seed": 3, "init": {"kind": "uniform", "scale": 0.1}}
    return json.dumps({"spec": spec, "optimizer": {"kind": "adam", "weight_decay": weight_decay}})


def push(tables: TableSet, name: str, step: int) -> None:
    tables.begin_step(step)
    tables[name].pull(SIGNS, True)
    tables[name].push(SIGNS, np.ones((len(SIGNS), 4), np.float32), 0.1)


def test_only_the_named_tables_are_emptied():
    tables = TableSet({name: table_json(name) for name in "ab"}, {"a": 0.1, "b": 0.1}, restarting=["b"])
    initial = tables["b"].peek(SIGNS)
    for name in "ab":
        push(tables, name, 1)
    kept = tables["a"].peek(SIGNS)
    assert tables.restart(1) == ("b",)
    assert np.array_equal(tables["a"].peek(SIGNS), kept)
    assert np.array_equal(tables["b"].peek(SIGNS), initial)
    assert tables["b"].rows() == 0


def test_rows_after_a_restart_have_missed_nothing():
    tables = TableSet({"a": table_json("a", weight_decay=0.1)}, {"a": 0.1}, restarting=["a"])
    push(tables, "a", 1)
    for step in range(2, 100):
        tables.begin_step(step)
    tables.restart(99)
    initial = tables["a"].peek(SIGNS)
    assert np.array_equal(tables["a"].pull(SIGNS, True), initial)
    tables.begin_step(100)
    # Had the row been taken for one of step 0, a hundred steps of decay would come first.
    assert np.array_equal(tables["a"].pull(SIGNS, True), initial)


def test_what_was_learnt_by_heart_is_forgotten_but_the_network_is_not():
    (usual,) = train(small_config("runner.0.output_path=usual", "runner.0.epochs=4"))
    (restarted,) = train(restarting_config("runner.0.output_path=restarted", "runner.0.epochs=4"))
    assert restarted["train"]["auc"] < usual["train"]["auc"] - 0.05
    (first,) = train(restarting_config("runner.0.output_path=first", "runner.0.epochs=1"))
    assert restarted["train"]["auc"] > first["train"]["auc"]


@pytest.mark.parametrize("last", ["epoch_0_batch_28", "epoch_1_batch_14"])
def test_a_resumed_run_equals_one_that_was_not_stopped(last):
    options = ("runner.0.save_step_interval=7", "runner.0.save_step_full_interval=3", "runner.0.epochs=3")
    for name in ("whole", "halves"):
        train(restarting_config(*options, f"runner.0.output_path={name}"))
    for number in ("0", "1", "2"):
        remove(Path("halves/checkpoints") / number)
    remove_after(Path("halves/steps"), last)
    train(restarting_config(*options, "runner.0.output_path=halves"), resume=True)
    assert fingerprint(Path("whole/checkpoints/2")) == fingerprint(Path("halves/checkpoints/2"))


def test_a_run_resumed_between_two_passes_starts_its_rows_anew_too():
    train(restarting_config("runner.0.output_path=whole"))
    train(restarting_config("runner.0.output_path=halves", "runner.0.epochs=2"))
    remove(Path("halves/checkpoints/1"))
    train(restarting_config("runner.0.output_path=halves"), resume=True)
    assert fingerprint(Path("whole/checkpoints/1")) == fingerprint(Path("halves/checkpoints/1"))


def test_the_first_difference_of_a_pass_builds_on_nothing_older():
    options = ("runner.0.save_step_interval=20", "runner.0.save_step_full_interval=10")
    # No checkpoint at the end of the first pass, which would end the chain by itself.
    train(restarting_config(*options, "runner.0.save_checkpoint_interval=-1"))
    assert open_checkpoint(Path("run/steps/epoch_1_batch_20")).manifest.base is None
