"""Training with parameter servers, undisturbed: it ends by itself, everything is counted once."""

from __future__ import annotations

import json

import pytest

from clickmill.cli.exits import USAGE
from tests.checkpoints import fingerprint
from tests.cluster.fleet import BAD_LINES, run_fleet
from tests.cluster.fleet import fleet as start_fleet
from tests.cluster.process import run


@pytest.mark.parametrize(("pservers", "trainers"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("strategy", ["async", "half_async", "sync", "hybrid", "geo"])
def test_a_run_ends_by_itself_and_its_checkpoint_is_what_was_measured(
    cluster_place, strategy, pservers, trainers
):
    # Two trainers of `geo` tell half of what they learn: a pass of it is worth less.
    passes = 3 if strategy == "geo" else 2
    options = (
        f"runner.0.distribute_strategy={strategy}",
        f"runner.0.worker_num={trainers}",
        f"runner.0.epochs={passes}",
    )
    fleet, summary = run_fleet(cluster_place, pservers, trainers, *options)
    fleet.assert_exact(summary, passes=passes)
    assert summary["train"]["auc"] > 0.6
    evaluated = run(
        cluster_place, "evaluate", "-m", "config.yaml", "--json", "--checkpoint", summary["checkpoint"]
    )
    evaluated.succeed()
    measured = json.loads(evaluated.words)
    shared = measured.keys() & summary["validation"].keys()
    assert {"auc", "logloss", "copc", "count"} <= shared
    for name in shared:
        assert measured[name] == pytest.approx(summary["validation"][name], abs=1e-9), name


@pytest.mark.parametrize("strategy", ["async", "sync", "geo"])
def test_units_without_a_sample_are_passed_over(cluster_place, strategy):
    (cluster_place / "logs").mkdir()
    (cluster_place / "logs/1.txt").symlink_to(cluster_place / "train.txt")
    for name in ("0.txt", "2.txt"):
        (cluster_place / "logs" / name).write_text("click:maybe nothing\n" * 3)
    options = (f"runner.0.distribute_strategy={strategy}", "dataset.0.data_path=logs")
    fleet, summary = run_fleet(cluster_place, 2, 2, *options)
    fleet.assert_exact(summary, bad_lines=BAD_LINES + 6)


def test_a_run_that_is_over_says_so_to_all_who_are_started_again(cluster_place):
    own, summary = run_fleet(cluster_place, 2, 2)
    before = own.committed
    again, same = run_fleet(cluster_place, 2, 2)
    assert same == summary
    assert again.committed["run"] == before["run"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("runner.0.epochs=1", "`runner.epochs`: `1`, not `2`"),
        ("runner.0.seed=7", "`runner.seed`: `7`, not"),
    ],
)
def test_a_run_that_is_over_refuses_another_job_by_name(cluster_place, option, words):
    run_fleet(cluster_place, 2, 1, "runner.0.worker_num=1")
    with start_fleet(cluster_place, 2, 1, "runner.0.worker_num=1", option) as own:
        (trainer,) = own.members
        assert trainer.wait() == USAGE
        assert words in trainer.words
        for server in own.servers:
            assert server.wait() == 0, own.words


@pytest.mark.parametrize("strategy", ["async", "sync", "geo"])
def test_a_run_that_is_over_goes_on_when_it_is_given_more_passes(cluster_place, strategy, request):
    options = (f"runner.0.distribute_strategy={strategy}",)
    first, once = run_fleet(cluster_place, 2, 2, *options, "runner.0.epochs=1")
    first.assert_exact(once, passes=1)
    own, summary = run_fleet(cluster_place, 2, 2, *options, "runner.0.epochs=2")
    own.assert_exact(summary)
    if strategy == "sync":
        undisturbed = request.getfixturevalue("undisturbed_sync")
        assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed


def test_added_passes_are_cut_and_dealt_as_the_first_ones_were(cluster_place, undisturbed_sync):
    run_fleet(cluster_place, 2, 2, "runner.0.epochs=1")
    options = ("runner.0.worker_num=3", "runner.0.cluster.lease_bytes=70000")
    own, summary = run_fleet(cluster_place, 1, 3, *options)
    own.assert_exact(summary)
    assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync


def test_a_run_that_was_killed_takes_another_number_of_passes(cluster_place, undisturbed_sync):
    with start_fleet(cluster_place, 2, 2, "runner.0.epochs=5") as own:
        assert own.wait_until(lambda status: status["snapshot"]["committed"] is not None)
        own.kill(*own.servers, *own.members)
        begun = own.committed["run"]["ledger"]["pass"]
        own.servers.clear()
        own.options = (f"runner.0.epochs={begun + 2}",)
        own.start()
        summary = own.finish()
        own.assert_exact(summary, passes=begun + 2)
    if begun == 0:
        assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync


def test_a_run_under_way_refuses_who_brings_another_number_of_passes(cluster_place):
    with start_fleet(cluster_place, 1, 1, "runner.0.worker_num=1", "runner.0.epochs=30") as own:
        assert own.wait_for_samples(500)
        own.options = ("runner.0.worker_num=1", "runner.0.epochs=31")
        late = own.start_trainer()
        assert late.wait() == USAGE
        assert "`runner.epochs`: `31`, not `30`" in late.words


def test_snapshots_may_lie_where_only_the_servers_were_told(cluster_place):
    (cluster_place / "elsewhere").mkdir()
    fleet, summary = run_fleet(cluster_place, 2, 2, snapshots="elsewhere")
    fleet.assert_exact(summary)
    assert summary["checkpoint"] is not None
