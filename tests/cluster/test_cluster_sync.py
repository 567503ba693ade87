"""What `sync` and `async` mean: one update of the joint batch, or none that waits for another's."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from clickmill import _core
from clickmill.config import load_config
from clickmill.data.source import DataSet
from clickmill.train.checkpoint import open_checkpoint
from tests.checkpoints import fingerprint
from tests.cluster.conftest import samples, slots_text
from tests.cluster.fleet import fleet, name_of, run_fleet

BATCH = 100
COUNTS = (1030, 1010)
"""Samples of the two lanes: both end in a short batch."""

ADAM_AND_ROWS = (
    "hyper_parameters.optimizer={class: Adam, learning_rate: 0.01}",
    "hyper_parameters.sparse_optimizer={class: RowWiseAdagrad, learning_rate: 0.05}",
)
CATCH_UP = ("hyper_parameters.optimizer={class: Adam, learning_rate: 0.01, lazy_mode: false}",)


@pytest.fixture
def lanes_place(tmp_path: Path) -> Path:
    """Two files, one a lane, and one file with the same batches side by side."""
    from tests.cluster.fleet import CONFIG

    lines = [
        [line for line in slots_text(samples(count, seed=count)).splitlines() if "bad" not in line]
        for count in COUNTS
    ]
    (tmp_path / "lanes").mkdir()
    (tmp_path / "joint").mkdir()
    for lane, own in enumerate(lines):
        (tmp_path / f"lanes/part-{lane}").write_text("\n".join(own) + "\n")
    joint = [
        line for begin in range(0, max(COUNTS), BATCH) for own in lines for line in own[begin : begin + BATCH]
    ]
    (tmp_path / "joint/part").write_text("\n".join(joint) + "\n")
    (tmp_path / "test.txt").write_text("\n".join(lines[0][:50]) + "\n")
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def trained(place: Path, name: str, pservers: int, trainers: int, *options: str) -> Path:
    settings = (f"runner.0.output_path={name}", "runner.0.cluster.lease_bytes=1000000", *options)
    own, summary = run_fleet(place, pservers, trainers, *settings, snapshots=f"{name}/snapshots")
    assert summary["samples"] == 2 * sum(COUNTS), own.words
    return place / summary["checkpoint"]


def parameters(place: Path, checkpoint: Path) -> dict[str, Any]:
    """Dense parameters, and the rows of all signs of the data, by table and group."""
    config = load_config(str(place / "config.yaml"), overrides=["dataset.0.data_path=joint/part"])
    opened = open_checkpoint(checkpoint)
    schema = _core.Schema((checkpoint / "schema.json").read_text())
    data = DataSet(config.dataset_named("log"), place)
    found: dict[str, Any] = dict(load_file(checkpoint / "dense.safetensors"))
    tables = {name: _core.Table.load(opened.table_files(name)) for name in opened.manifest.tables}
    source = data.open_in_order(schema)
    number = 0
    while (batch := source.next()) is not None:
        for group in range(batch.num_groups):
            for name, table in tables.items():
                found[f"{name}.{group}.{number}"] = table.peek(batch.signs(group))
        number += 1
    source.close()
    for name, table in tables.items():
        found[f"{name}.rows"] = np.array([table.rows()])
    return found


@pytest.mark.parametrize("optimizer", [ADAM_AND_ROWS, CATCH_UP], ids=["Adam and Adagrad", "catching up"])
def test_two_trainers_give_the_parameters_of_one_on_the_joint_batch(lanes_place, optimizer):
    own = ("dataset.0.data_path=joint", "runner.0.worker_num=1", f"dataset.0.batch_size={2 * BATCH}")
    joint = parameters(lanes_place, trained(lanes_place, "one", 1, 1, *own, *optimizer))
    for pservers in (1, 2, 3):
        options = ("dataset.0.data_path=lanes", f"dataset.0.batch_size={BATCH}", *optimizer)
        found = trained(lanes_place, f"two-{pservers}", pservers, 2, *options)
        apart = parameters(lanes_place, found)
        assert apart.keys() == joint.keys()
        for name, array in joint.items():
            np.testing.assert_allclose(apart[name], array, rtol=0, atol=1e-5, err_msg=name)


def test_sync_stops_while_a_trainer_is_stopped_and_goes_on_as_if_nothing_had_happened(
    cluster_place, undisturbed_sync
):
    with fleet(cluster_place, 2, 2, dead_after_s=60) as own:
        assert own.wait_for_samples(500)
        own.members[1].kill(signal.SIGSTOP)
        seen = [silent(own, name_of(own.members[1]), seconds) for seconds in (1, 3)]
        assert seen[0] == seen[1], "the others went on"
        own.members[1].kill(signal.SIGCONT)
        summary = own.finish()
        own.assert_exact(summary)
    assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync


def silent(own: Any, name: str, seconds: int) -> int:
    """Samples that were trained when nothing was heard of a trainer for so long, but of the other."""

    def is_so(status: dict[str, Any]) -> bool:
        heard = {each["name"]: each["heard_s_ago"] for each in status["trainers"]}
        return heard[name] >= seconds and min(heard.values()) < seconds

    status = own.wait_until(is_so)
    assert status is not None, own.words
    count: int = status["samples"]
    return count


def test_async_finishes_all_other_units_while_a_trainer_is_stopped(cluster_place):
    options = ("runner.0.distribute_strategy=async", "runner.0.cluster.snapshot_interval_s=1000")
    with fleet(cluster_place, 2, 2, *options, "runner.0.epochs=30", dead_after_s=60) as own:
        name = name_of(own.members[1])
        while True:
            assert own.wait_until(lambda status: units_of(status, name)) is not None, own.words
            own.members[1].kill(signal.SIGSTOP)
            status = own.status()
            assert status is not None
            if units_of(status, name):
                break
            own.members[1].kill(signal.SIGCONT)
        own.wait_until(lambda status: status["units_done"] == status["units"] - len(units_of(status, name)))
        assert own.members[1].process.is_alive()
        own.members[1].kill(signal.SIGCONT)
        own.assert_exact(own.finish(), passes=30)


def units_of(status: dict[str, Any], name: str) -> list[Any]:
    """What a trainer is at work on."""
    return next((each["units"] for each in status["trainers"] if each["name"] == name), [])
