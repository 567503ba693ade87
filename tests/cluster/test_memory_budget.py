"""A server with too little memory says so, evicts rows, and ends the run rather than be killed."""

from __future__ import annotations

import re

import pytest

from tests.cluster.running import cluster

USERS = 200_000


@pytest.mark.timeout(300)
def test_a_full_server_evicts_its_oldest_rows_and_training_goes_on(tmp_path):
    with cluster(tmp_path, samples=USERS, users=USERS) as running:
        running.pserver("--index", "0", "--memory-budget", "10MB")
        running.trainer("dataset.0.batch_size=200")
        running.end()
        words = running.pservers[0].words
    assert re.search(r"pserver.memory_fills index=0 percent=8\d", words), words
    assert re.search(r"pserver.memory_fills index=0 percent=9\d", words), words
    (relieved, *_) = re.findall(r"pserver.memory_relieved .*", words)
    found = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", relieved)}
    assert found["evicted_by_age"] > 0
    assert found["evicted_by_rule"] == found["evicted_by_score"] == 0
    assert found["bytes"] <= 0.86 * 10_000_000


@pytest.mark.timeout(300)
def test_a_budget_that_holds_nothing_ends_the_run_with_the_name_of_the_server(tmp_path):
    with cluster(tmp_path, samples=20_000, users=20_000, pause=0.01) as running:
        running.pserver("--index", "0", "--memory-budget", "100KB")
        trainer = running.trainer("dataset.0.batch_size=500", arguments=("--json",))
        assert running.pservers[0].wait() == 1
        trainer.wait()
        assert "pserver 0" in running.pservers[0].words
        assert "its memory budget of 100000" in running.pservers[0].words
        assert "--memory-budget" in running.pservers[0].words
