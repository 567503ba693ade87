"""A disk that is full: the run stops with words, and what was saved before stays good."""

from __future__ import annotations

from pathlib import Path

from tests.checkpoints import fingerprint
from tests.cluster.process import run
from tests.cluster.test_kill_training import train, undisturbed

OPTIONS = ("runner.0.epochs=1", "hyper_parameters.tables.embedding={bucket_bits: 0}")


def limits(whole: Path) -> list[int]:
    """File sizes under which the first checkpoint can be written, and some later one not."""
    sizes = {
        name: max(path.stat().st_size for path in (whole / "steps" / name).rglob("*") if path.is_file())
        for name in ("epoch_0_batch_6", "epoch_0_batch_18", "epoch_0_batch_36")
    }
    first = sizes["epoch_0_batch_6"]
    assert first < sizes["epoch_0_batch_18"] < sizes["epoch_0_batch_36"]
    return [sizes["epoch_0_batch_18"] - 1, sizes["epoch_0_batch_36"] - 1]


def test_a_checkpoint_that_does_not_fit_leaves_the_one_before_and_the_run_can_go_on(workplace):
    options = (*OPTIONS, "runner.0.print_interval=1000")
    whole = undisturbed(workplace, *options)
    for index, limit in enumerate(limits(whole)):
        stopped = run(workplace, *train(*options, resume=index > 0), file_bytes=limit)
        assert stopped.wait() == 1, stopped.words
        assert "error: cannot write checkpoint `run/" in stopped.words
        assert "File too large" in stopped.words
        assert "is whole" in stopped.words
        assert "--resume" in stopped.words
        assert "Traceback" not in stopped.words
        assert [path for path in (workplace / "run").rglob(".*") if path.name != ".lock"] == []
    run(workplace, *train(*options, resume=True)).succeed()
    assert fingerprint(workplace / "run/checkpoints/0") == fingerprint(whole / "checkpoints/0")


def test_a_journal_that_cannot_be_written_is_named(workplace):
    options = ("runner.0.save_step_interval=-1", "runner.0.epochs=3")
    stopped = run(workplace, "--quiet", *train(*options), file_bytes=20_000)
    assert stopped.wait() == 1, stopped.words
    assert "error: cannot write to `run/journal.jsonl`: File too large" in stopped.words
    assert "Traceback" not in stopped.words
    run(workplace, *train(*options, resume=True)).succeed()
