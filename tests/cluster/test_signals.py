"""Asked to stop, a run stops: with the code of the signal, its files closed, and ready to go on."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.checkpoints import fingerprint
from tests.cluster.process import command, run
from tests.cluster.running import cluster
from tests.cluster.test_kill_training import train, undisturbed

FREEZING_READER = '''
import os
import signal
from pathlib import Path


class Reader:
    """Samples of users that come once; freezes the server when it is made, or before a sample."""

    def __init__(self, files, options):
        self.server = Path(__file__).with_name("server.pid")
        self.before = options.get("before")
        if self.before is None:
            self.freeze(int(self.server.read_text()))

    def __iter__(self):
        for number in range(100_000):
            if number == self.before:
                self.freeze(int(self.server.read_text()))
            yield {"click": number % 2, "price": 0.5, "user": f"u{number}", "item": "i"}

    def freeze(self, pid):
        os.kill(pid, signal.SIGSTOP)
        # Until the last of its threads has stopped it may still answer.
        while any(self.runs(thread) for thread in Path(f"/proc/{pid}/task").iterdir()):
            pass
        self.server.with_name("frozen").touch()

    def runs(self, thread):
        try:
            return "State:\\tT" not in (thread / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
'''


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_in_order_and_it_can_be_resumed(workplace, num_workers, number, code):
    options = (f"phase.0.thread_num={num_workers}",)
    with command(workplace, *train(*options)) as running:
        assert running.wait_until(lambda: "epoch_0_batch_12" in running.words)
        running.kill(number)
        assert running.wait() == code, running.words
        assert "interrupted in pass " in running.words
        assert "`--resume` goes on from `run/" in running.words
        assert "Traceback" not in running.words
        assert "Exception" not in running.words
    journal = (workplace / "run/journal.jsonl").read_bytes()
    assert all(json.loads(line) for line in journal.splitlines())
    assert journal.endswith(b"\n")
    assert [path for path in (workplace / "run").rglob(".*") if path.name != ".lock"] == []
    run(workplace, *train(*options, resume=True)).succeed()
    whole = undisturbed(workplace, *options)
    assert fingerprint(workplace / "run/checkpoints/1") == fingerprint(whole / "checkpoints/1")


def test_a_second_run_in_the_same_folder_is_refused_and_the_first_goes_on(workplace: Path):
    with command(workplace, *train("runner.0.epochs=50")) as first:
        assert first.wait_until(lambda: "TRAIN -->" in first.words)
        (workplace / "other").mkdir()
        for path in workplace.glob("*.*"):
            (workplace / "other" / path.name).symlink_to(path)
        folder = workplace / "run"
        second = run(workplace / "other", *train(f"runner.0.output_path={folder}"))
        assert second.wait() == 1
        assert f"folder `{folder}` is in use by another run, process {first.pid}" in second.words
        assert "hint: " in second.words
        assert first.process.is_alive()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_trainer_whose_server_is_frozen_can_be_told_to_end(tmp_path: Path, number, code):
    with cluster(tmp_path, samples=200_000) as running:
        server = running.pserver("--index", "0")
        trainer = running.trainer()
        running.wait_for(lambda status: status["samples"] > 0)
        server.kill(signal.SIGSTOP)
        try:
            trainer.kill(number)
            assert trainer.wait() == code, trainer.words
            assert "Traceback" not in trainer.words
        finally:
            server.kill(signal.SIGKILL)


@pytest.mark.parametrize(
    "options",
    [
        ("runner.0.communicator.send_queue_size=8", "dataset.0.reader_options.before=2000"),
        ("runner.0.distribute_strategy=geo", "dataset.0.reader_options.before=2000"),
        ("runner.0.distribute_strategy=geo",),
    ],
    ids=["queue", "geo", "geo-begins"],
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_whatever_waits_for_a_frozen_server_ends_when_its_trainer_is_told_to(
    tmp_path: Path, options, number, code
):
    with cluster(tmp_path, samples=1) as running:
        (tmp_path / "reader.py").write_text(FREEZING_READER)
        server = running.pserver("--index", "0")
        (tmp_path / "server.pid").write_text(str(server.pid))
        trainer = running.trainer(f"dataset.0.data_converter={tmp_path}/reader.py", *options)
        try:
            assert trainer.wait_until((tmp_path / "frozen").exists), trainer.words
            trainer.kill(number)
            assert trainer.wait() == code, trainer.words
            assert "Traceback" not in trainer.words
        finally:
            server.kill(signal.SIGKILL)
