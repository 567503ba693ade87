"""Training with parameter servers, undisturbed: it ends by itself, everything is counted once."""

from __future__ import annotations

import json

import pytest

from tests.cluster.fleet import run_fleet
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
