from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.unit.train.conftest import small_config

from clickmill import _core
from clickmill.errors import ConfigError, FormatError
from clickmill.train.api import evaluate, infer, train
from clickmill.train.checkpoint import open_checkpoint
from clickmill.train.journal import read_journal


def fingerprint(folder: Path) -> dict[str, object]:
    """Everything that a checkpoint says, bit for bit: dense, optimizer, rows, metrics and position."""
    checkpoint = open_checkpoint(folder)
    state = checkpoint.read_json("trainer.json")
    del state["journal_bytes"]  # the journal holds times
    return {
        "dense": {name: array.tobytes() for name, array in load_file(folder / "dense.safetensors").items()},
        "optimizer": {
            name: array.tobytes() for name, array in load_file(folder / "optimizer.safetensors").items()
        },
        "tables": {
            name: _core.Table.load(checkpoint.table_files(name)).digest()
            for name in checkpoint.manifest.tables
        },
        "trainer": state,
        "metrics": checkpoint.manifest.metrics,
    }


@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_two_runs_of_one_seed_are_equal_bit_for_bit(workplace, num_workers):
    prints = []
    for name in ("first", "second"):
        config = small_config(f"runner.0.output_path={name}", f"phase.0.thread_num={num_workers}")
        train(config)
        prints.append(fingerprint(Path(name) / "checkpoints" / "1"))
    assert prints[0] == prints[1]


def test_another_seed_is_another_run(workplace):
    prints = []
    for seed in (1, 2):
        train(small_config(f"runner.0.output_path=seed{seed}", f"runner.0.seed={seed}", "runner.0.epochs=1"))
        prints.append(fingerprint(Path(f"seed{seed}") / "checkpoints" / "0"))
    assert prints[0]["dense"] != prints[1]["dense"]
    assert prints[0]["tables"] != prints[1]["tables"]


def test_the_number_of_reader_threads_changes_nothing(workplace):
    prints = []
    for threads in (1, 3):
        config = small_config(
            f"runner.0.output_path=t{threads}", f"dataset.0.threads={threads}", "runner.0.epochs=1"
        )
        train(config)
        prints.append(fingerprint(Path(f"t{threads}") / "checkpoints" / "0"))
    assert prints[0] == prints[1]


@pytest.mark.parametrize("model", ["lr", "deepfm", "wide_deep"])
@pytest.mark.parametrize("full_interval", [1, 3])
def test_a_run_resumed_from_the_middle_of_a_pass_equals_one_that_was_not_stopped(
    workplace, model, full_interval
):
    options = (
        f"phase.0.model={model}",
        "runner.0.save_step_interval=7",
        f"runner.0.save_step_full_interval={full_interval}",
    )
    train(small_config(*options, "runner.0.output_path=whole"))
    # A pass has 31 batches; stop in the middle of the second, with checkpoints behind it.
    stopped = small_config(*options, "runner.0.output_path=halves", "runner.0.max_batches=23")
    train(stopped)
    for name in ("0", "1"):
        remove(Path("halves/checkpoints") / name)
    remove_after(Path("halves/steps"), "epoch_0_batch_21")
    train(small_config(*options, "runner.0.output_path=halves"), resume=True)
    assert fingerprint(Path("whole/checkpoints/1")) == fingerprint(Path("halves/checkpoints/1"))
    lines = [
        strip(event) for event in read_journal(Path("whole")) if event["event"] in {"interval", "pass_end"}
    ]
    again = [
        strip(event) for event in read_journal(Path("halves")) if event["event"] in {"interval", "pass_end"}
    ]
    assert lines == again


def strip(event):
    """Without what depends on the clock."""
    return {
        key: value for key, value in event.items() if key not in {"time", "samples_per_second", "seconds"}
    }


def remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def remove_after(parent: Path, name: str) -> None:
    """Leave the state that a crash right after checkpoint `name` would have left."""
    step = open_checkpoint(parent / name).manifest.step
    for folder in parent.iterdir():
        if open_checkpoint(folder).manifest.step > step:
            remove(folder)


def test_training_learns_and_evaluation_says_the_same_as_validation(workplace):
    (summary,) = train(small_config("runner.0.epochs=4"))
    assert summary["train"]["auc"] > 0.8
    assert summary["validation"]["auc"] > 0.55
    result = evaluate(small_config())
    assert result["samples"] == 1000
    assert result["auc"] == summary["validation"]["auc"]
    assert result["exact_auc"] == pytest.approx(result["auc"], abs=1e-4)


def test_inference_writes_one_score_a_sample_in_their_order(workplace):
    train(small_config())
    result = infer(small_config(), Path("out/scores.txt"))
    scores = np.loadtxt("out/scores.txt", dtype=np.float32)
    assert scores.shape == (1000,) == (result["samples"],)
    labels = [line.split("\t")[0] for line in Path("test.tsv").read_text().splitlines()]
    metrics = _core.ExactAuc(10_000)
    metrics.update(scores, np.array(labels, np.float32), None)
    assert metrics.auc() == pytest.approx(evaluate(small_config())["exact_auc"], abs=1e-6)


def test_a_damaged_checkpoint_is_refused_and_named(workplace):
    train(small_config("runner.0.epochs=1"))
    path = Path("run/checkpoints/0/dense.safetensors")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"dense\.safetensors is damaged"):
        evaluate(small_config())


def test_checkpoints_are_pruned_by_the_policy(workplace):
    train(small_config("runner.0.epochs=6", "runner.0.save_checkpoint_keep={last: 1, best: 1}"))
    names = sorted(path.name for path in Path("run/checkpoints").iterdir())
    scores = {
        event["pass_number"]: event["validation"]["auc"]
        for event in read_journal(Path("run"))
        if event["event"] == "pass_end"
    }
    best = max(scores, key=lambda number: scores[number])
    assert names == sorted({"5", str(best)})


def test_pass_folders_have_the_style_that_was_asked_for(workplace):
    train(small_config("runner.0.save_checkpoint_style=pass"))
    assert sorted(path.name for path in Path("run/checkpoints").iterdir()) == ["pass-00000", "pass-00001"]


def test_early_stopping_ends_the_run_and_a_resume_does_not_go_on(workplace):
    options = ("runner.0.epochs=30", "hyper_parameters.optimizer.learning_rate=0.05")
    config = small_config(*options, "runner.0.early_stopping={metric: auc, patience: 1}")
    (summary,) = train(config)
    assert summary["step"] < 30 * 31
    (again,) = train(config, resume=True)
    assert again["checkpoint"] == summary["checkpoint"]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_clipping_to_a_tiny_norm_keeps_the_parameters_nearly_where_they_were(workplace, precision):
    options = (
        f"runner.0.precision={precision}",
        "hyper_parameters.optimizer={class: SGD, learning_rate: 1.0}",
    )
    train(
        small_config(*options, "runner.0.epochs=1", "runner.0.clip_norm=1e-6", "runner.0.output_path=clipped")
    )
    train(small_config(*options, "runner.0.max_batches=1", "runner.0.epochs=1", "runner.0.output_path=one"))
    clipped = load_file("clipped/checkpoints/0/dense.safetensors")
    one = load_file("one/checkpoints/0/dense.safetensors")
    moved = max(float(np.abs(clipped[name] - one[name]).max()) for name in clipped)
    assert 0.0 < moved < 1.0
    # 31 steps of norm 1e-6 each.
    start = small_config(
        *options, "runner.0.clip_norm=1e-12", "runner.0.epochs=1", "runner.0.output_path=start"
    )
    train(start)
    initial = load_file("start/checkpoints/0/dense.safetensors")
    assert max(float(np.abs(clipped[name] - initial[name]).max()) for name in clipped) < 1e-4


def test_an_unknown_metric_to_watch_is_named(workplace):
    with pytest.raises(ConfigError, match="no metric `gini`"):
        train(small_config("runner.0.early_stopping={metric: gini}"))


def test_a_gauc_is_given_where_the_schema_has_a_group(workplace):
    config = small_config()
    result = evaluate_after_training(config)
    assert "gauc" not in result


def evaluate_after_training(config):
    train(config)
    return json.loads(json.dumps(evaluate(config)))
