"""Snapshots on a disk that is full or damaged: the last good one stays, and what is bad is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clickmill.cli.exits import DAMAGED
from tests.checkpoints import fingerprint
from tests.cluster.conftest import lay_out
from tests.cluster.fleet import Fleet, fleet, run_fleet

LARGE = ("runner.0.cluster.snapshot_full_interval=1", "hyper_parameters.sparse_feature_dim=128")
"""All rows in every snapshot, and these much larger than the commit file."""


def sizes(own: Fleet) -> list[int]:
    files = own.committed["snapshot"]["layers"][-1]["files"]
    return [file["bytes"] for file in files]


def has_trained_a_pass(own: Fleet, status: dict[str, Any]) -> bool:
    return status["snapshot"]["committed"] is not None and bool(own.committed["run"]["history"])


def stop_everyone(own: Fleet) -> None:
    own.kill(*own.servers, *own.members)
    own.servers.clear()


def snapshot_folders(own: Fleet) -> list[Path]:
    return list((own.folder / own.snapshots).glob("snapshot-*"))


PASSES = 20


def test_a_snapshot_that_does_not_fit_leaves_the_one_before_and_training_goes_on(
    cluster_place, tmp_path_factory
):
    options = (*LARGE, f"runner.0.epochs={PASSES}")
    with fleet(cluster_place, 2, 2, *options) as own:
        assert own.wait_until(lambda status: has_trained_a_pass(own, status)), own.words
        stop_everyone(own)
        before = own.committed["snapshot"]
        # Servers may have been killed before they had removed an older one.
        there = snapshot_folders(own)
        own.file_bytes = max(sizes(own)) - 1
        own.start()
        failed = own.wait_until(lambda status: status["snapshot"]["failure"] is not None)
        assert failed is not None, own.words
        assert "File too large" in failed["snapshot"]["failure"]
        assert own.wait_for_samples(failed["samples"] + 500), "training did not go on"
        for each in (*own.members, *own.servers):
            assert each.wait() == 1, own.words
        assert "the last snapshot could not be committed: " in own.words
        assert own.committed["snapshot"] == before
        failed_ones = set(snapshot_folders(own)) - set(there)
        assert all(any(folder.iterdir()) for folder in failed_ones), "none is left behind empty"
        own.members.clear()
        own.servers.clear()
        own.file_bytes = None
        own.start()
        summary = own.finish()
        own.assert_exact(summary, passes=PASSES)
    elsewhere = lay_out(tmp_path_factory.mktemp("undisturbed"), cluster_place)
    undisturbed = run_fleet(elsewhere, 1, 1, *options, gather_s=0.01)[1]
    assert fingerprint(cluster_place / summary["checkpoint"]) == fingerprint(
        elsewhere / undisturbed["checkpoint"]
    )


@pytest.mark.parametrize("suffix", [".rows", ".safetensors", "committed.json"])
def test_a_damaged_file_of_a_snapshot_is_refused_by_name(cluster_place: Path, suffix: str):
    with fleet(cluster_place, 2, 1, "runner.0.worker_num=1", wait_s=5) as own:
        assert own.wait_until(lambda status: status["snapshot"]["committed"] is not None)
        stop_everyone(own)
        files = [file["name"] for file in own.committed["snapshot"]["layers"][-1]["files"]]
        name = next((each for each in files if each.endswith(suffix)), suffix)
        path = cluster_place / own.snapshots / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x55
        path.write_bytes(content)
        if suffix == "committed.json":
            server = own.launch_server(0)
            assert server.wait() == DAMAGED
            assert name in server.words
            assert "damaged" in server.words
            return
        own.start()
        for each in (*own.servers, *own.members):
            assert each.wait() == DAMAGED, own.words
            assert Path(name).name in each.words
