"""Clusters whose data, or whose checkpoints, are elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from clickmill.train.remote_checkpoint import local_checkpoint, upload_checkpoint
from tests.checkpoints import fingerprint
from tests.cluster.conftest import lay_out
from tests.cluster.fleet import fleet, run_fleet, summary_of
from tests.cluster.process import run, start
from tests.remote.file_server import FileServer

LOCAL_ONLY = ("AWS_", "CLICKMILL_")


@pytest.fixture(name="variables")
def _variables(own_cache: Path) -> dict[str, str]:
    """Of this test, for processes that are started elsewhere."""
    return {name: value for name, value in os.environ.items() if name.startswith(LOCAL_ONLY)}


def served(web: FileServer, data: Path) -> tuple[str, ...]:
    """The data on a file server, as options."""
    for name in ("train.txt", "test.txt"):
        shutil.copy(data / name, web.root)
    return (
        f"dataset.0.data_path={web.url}/train.txt",
        f"dataset.0.validation.data_path={web.url}/test.txt",
    )


def test_a_cluster_with_data_elsewhere_comes_to_the_same_bits(
    cluster_place, web, data, variables, own_cache, undisturbed_sync
):
    options = served(web, data)
    for name in ("train.txt", "test.txt"):
        (cluster_place / name).unlink()
    with fleet(cluster_place, 2, 2, *options, environment=variables) as own:
        if own.wait_for_samples(1500):
            own.kill(own.members[0])
        summary = own.finish()
    own.assert_exact(summary)
    assert fingerprint(cluster_place / summary["checkpoint"]) == undisturbed_sync
    assert {path.name for path in own_cache.rglob("content/*")} == {"train.txt", "test.txt"}


def test_a_trainer_brings_the_files_of_its_leases(cluster_place, web, data, variables, tmp_path):
    lines = (data / "train.txt").read_text().splitlines(keepends=True)
    (web.root / "parts").mkdir()
    for number in range(8):
        (web.root / "parts" / f"part-{number}.txt").write_text("".join(lines[number::8]))
    options = (
        f"dataset.0.data_path={web.url}/parts",
        "runner.0.distribute_strategy=async",
        "runner.0.epochs=1",
        "runner.0.worker_num=1",
        "runner.0.max_batches=3",
    )
    own, _ = run_fleet(cluster_place, 1, 1, *options, environment=variables)
    brought = own.words.count("remote.downloaded")
    assert 1 <= brought < 8, own.words


@pytest.fixture(scope="module", name="origin")
def _origin(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """A checkpoint to begin with."""
    place = lay_out(tmp_path_factory.mktemp("origin"), data)
    run(place, "train", "-m", "config.yaml", "--set", "runner.0.epochs=1").succeed()
    return place / "run/checkpoints/0"


def test_servers_begin_with_a_checkpoint_elsewhere(cluster_place, bucket, variables, origin):
    url = f"{bucket}/models/first"
    upload_checkpoint(origin, url)
    options = ("runner.0.epochs=1", "runner.0.cluster.snapshot_interval_s=1000")
    _, summary = run_fleet(
        cluster_place,
        *(2, 2, *options, "runner.0.output_path=here", f"runner.0.init_model_path={origin}"),
        snapshots="here/snapshots",
    )
    expected = fingerprint(cluster_place / summary["checkpoint"])
    with fleet(
        cluster_place,
        *(2, 2, *options, "runner.0.output_path=there", f"runner.0.init_model_path={url}"),
        snapshots="there/snapshots",
        environment=variables,
    ) as own:
        if own.wait_for_samples(500):
            # There is no snapshot: all servers begin again, with the copy in the folder of the run.
            own.kill(own.servers[1])
            own.start_server(1)
        summary = own.finish()
    assert fingerprint(cluster_place / summary["checkpoint"]) == expected
    assert [path.name for path in (cluster_place / "there/origin").glob("*/*/checkpoint.json")] == [
        "checkpoint.json"
    ]


def test_the_last_checkpoint_is_there_whoever_wrote_it(cluster_place, web, variables):
    options = ("runner.0.epochs=1", f"runner.0.save_checkpoint_path={web.url}/models")
    web.fail(status=503, times=1_000_000)
    with fleet(
        cluster_place, 1, 2, *options, environment=variables | {"CLICKMILL_REMOTE_PATIENCE_S": "100"}
    ) as own:
        writer, other = own.members
        assert own.servers[0].wait() == 0, own.words
        if "checkpoint.saved" not in writer.words:
            writer, other = other, writer
        # The one that has written it tries to put it there, the other waits for its turn.
        assert writer.wait_until(lambda: "remote.retries" in writer.words), own.words
        own.kill(writer)
        assert not (web.root / "models").exists()
        web.fail(times=0)
        assert other.wait() == 0, own.words
    assert summary_of(other)["uploaded"] == f"{web.url}/models/0"
    there = fingerprint(local_checkpoint(f"{web.url}/models/0"))
    assert there == fingerprint(cluster_place / "run/checkpoints/0")


def test_a_run_that_could_not_put_its_checkpoint_there_does_so_when_it_is_resumed(
    cluster_place, web, variables
):
    options = ("runner.0.epochs=1", "runner.0.worker_num=1")
    closed = variables | {"CLICKMILL_UPLOAD": f"{web.url}/models", "CLICKMILL_REMOTE_PATIENCE_S": "0"}
    (web.root / "models").write_text("in the way")
    with fleet(cluster_place, 1, 1, *options, environment=closed) as own:
        assert own.members[0].wait() == 1, own.words
        assert "cannot put the checkpoint to" in own.members[0].words
        assert own.servers[0].wait() == 0, own.words
    (web.root / "models").unlink()
    _, summary = run_fleet(cluster_place, 1, 1, *options, environment=closed)
    assert summary["uploaded"] == f"{web.url}/models/checkpoints/0"
    assert (web.root / "models/checkpoints/0/checkpoint.json").is_file()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_a_file(workplace, web, data, variables, number):
    lines = (data / "train.txt").read_text().splitlines(keepends=True)
    (web.root / "parts").mkdir()
    for part in range(2):
        (web.root / "parts" / f"part-{part}").write_text("".join(lines[part::2]))
    web.fail(status=503, times=1_000_000, whole="part-1")
    options = ("--set", f"dataset.0.data_path={web.url}/parts", "--set", "phase.0.thread_num=2")
    command = start(
        workplace,
        workplace / "log",
        *("train", "-m", "config.yaml", *options),
        environment=variables | {"CLICKMILL_REMOTE_PATIENCE_S": "1000"},
    )
    try:
        # The first file is trained on; the second does not come.
        assert command.wait_until(lambda: "batch: 10 " in command.words), command.words
        assert command.wait_until(lambda: "remote.retries" in command.words), command.words
        command.kill(number)
        assert command.wait() == 128 + number, command.words
        assert "interrupted in pass 0" in command.words
    finally:
        command.end()
