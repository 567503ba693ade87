"""What `sync` and `async` mean: one update of the joint batch, or none that waits for another's."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import fingerprint
from tests.cluster.conftest import samples, slots_text
from tests.cluster.fleet import fleet, name_of, run_fleet
from tests.cluster.parameters import assert_close, parameters

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
    # A larger net makes more of what is rounded, in either way of training it.
    net = "hyper_parameters.fc_sizes=[16, 8]"
    settings = (f"runner.0.output_path={name}", "runner.0.cluster.lease_bytes=1000000", net, *options)
    own, summary = run_fleet(place, pservers, trainers, *settings, snapshots=f"{name}/snapshots")
    assert summary["samples"] == 2 * sum(COUNTS), own.words
    return place / summary["checkpoint"]


@pytest.mark.parametrize("optimizer", [ADAM_AND_ROWS, CATCH_UP], ids=["Adam and Adagrad", "catching up"])
def test_two_trainers_give_the_parameters_of_one_on_the_joint_batch(lanes_place, optimizer):
    own = ("dataset.0.data_path=joint", "runner.0.worker_num=1", f"dataset.0.batch_size={2 * BATCH}")
    joint = parameters(lanes_place, trained(lanes_place, "one", 1, 1, *own, *optimizer), "joint/part")
    for pservers in (1, 2, 3):
        options = ("dataset.0.data_path=lanes", f"dataset.0.batch_size={BATCH}", *optimizer)
        found = trained(lanes_place, f"two-{pservers}", pservers, 2, *options)
        assert_close(parameters(lanes_place, found, "joint/part"), joint)


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
