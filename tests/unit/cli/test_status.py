"""The status of a cluster, as a person sees it."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from clickmill.cli.status import duration, shares_words, status_page
from tests.unit.jobs.scripted import wait


def status(**changes: Any) -> dict[str, Any]:
    server = {
        "index": 0,
        "address": "10.0.0.1:30240",
        "is_live": True,
        "heard_s_ago": 1,
        "buckets": 512,
        "memory_share": 0.91,
        "full_in_s": 7200,
        "statistics": {
            "rows": 1_234_567,
            "bytes": 98_123_776,
            "pulls_per_s": 31.0,
            "pushes_per_s": 30.0,
            "pulled_rows_per_s": 81_000.0,
            "pushed_rows_per_s": 80_000.0,
            "staleness_steps": 1.5,
        },
    }
    trainer = {
        "trainer": 1,
        "name": "host-1",
        "heard_s_ago": 0,
        "is_parked": True,
        "units": ["part-3.gz"],
        "statistics": {"samples": 5000, "samples_per_s": 31_204.0, "shares": {"compute": 0.61, "pull": 0.2}},
    }
    return {
        "phase": "running",
        "epoch": 1_000_001,
        "waiting": [
            wait("server", "pserver 1 (10.0.0.2:30240)", 12, advice="`clickmill pserver` starts one")
        ],
        "pass": 1,
        "num_passes": 4,
        "stage": "train",
        "units_done": 3,
        "units": 12,
        "samples": 900_000,
        "batches": 900,
        "fence": 6,
        "wanted_fence": 7,
        "snapshot": {"committed": 12, "bytes": 2048, "age_s": 45, "in_progress": 13, "failure": None},
        "scaling_to": 3,
        "scaling_waits_for": [],
        "scaling_failure": None,
        "num_servers": 2,
        "strategy": "sync",
        "servers": [server, {**server, "index": 1, "buckets": 0, "is_live": False, "full_in_s": None}],
        "trainers": [trainer],
        "duties": ["publish of pass 0"],
        **changes,
    }


def words(**changes: Any) -> str:
    console = Console(width=220, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(status_page(status(**changes)))
    return capture.get()


def test_the_page_has_what_people_ask_for():
    page = words()
    for expected in (
        "running, sync, pass 2 of 4, train",
        "fence 6 (fence 7 is wanted)",
        "snapshot 12, 2.0 KiB, 45 s ago; snapshot 13 is being taken",
        "buckets move from 2 to 3 servers",
        "1,234,567",
        "93.6 MiB",
        "91%",
        "2.0 h",
        "pserver 1 (spare) (lost)",
        "compute 61%, pull 20%",
        "trainer 1 (parked)",
        "part-3.gz",
        "publish of pass 0",
        "waiting for pserver 1 (10.0.0.2:30240); `clickmill pserver` starts one",
    ):
        assert expected in page, expected


def test_a_cluster_that_has_just_been_started_can_be_looked_at():
    page = words(
        num_passes=0,
        strategy=None,
        stage=None,
        wanted_fence=None,
        snapshot={"committed": None, "bytes": 0, "age_s": None, "in_progress": None, "failure": "no space"},
        scaling_to=None,
        scaling_failure="a pserver was lost",
        trainers=[],
    )
    assert "no job yet" in page
    assert "no snapshot yet; the last one has failed: no space" in page
    assert "the last scaling has failed: a pserver was lost" in page


def test_a_wish_for_servers_that_have_not_come_is_told_from_buckets_that_move():
    page = words(scaling_to=4, scaling_waits_for=[2, 3])
    assert "are to move from 2 to 4 servers; none moves before pserver 2 and pserver 3 are there" in page
    assert "buckets move" not in page


def test_durations_and_shares_are_short():
    assert [duration(each) for each in (45, 600, 8000, 200_000)] == ["45 s", "10 min", "2.2 h", "2.3 days"]
    assert shares_words({}) == "-"
    assert (
        shares_words({"read": 0.5, "pull": 0.2, "push": 0.15, "wait": 0.1}) == "read 50%, pull 20%, push 15%"
    )


def test_the_metrics_of_the_stage_are_told_where_they_are_known():
    metrics = {
        "step": 900,
        "is_validation": False,
        "numbers": {"auc": 0.76112, "logloss": 0.4512, "mae": 1.0},
    }
    assert "training auc 0.7611, logloss 0.4512" in words(metrics=metrics)
    assert "auc" not in words(metrics=None)
