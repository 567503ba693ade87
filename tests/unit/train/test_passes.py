"""What happens at the ends of passes and between batches, as the configuration asks."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest
from tests.checkpoints import fingerprint
from tests.unit.train.conftest import CONFIG, small_config

from clickmill.config import parse_config
from clickmill.data.source import DataSet
from clickmill.train.api import evaluate, train
from clickmill.train.assembly import build_parts
from clickmill.train.journal import read_journal


def events(kind: str, run: str = "run") -> list[dict]:
    return [event for event in read_journal(Path(run)) if event["event"] == kind]


def test_evaluation_happens_every_so_many_passes_and_at_the_end(workplace):
    train(small_config("runner.0.epochs=5", "runner.0.evaluate_interval=2"))
    assert [bool(end["validation"]) for end in events("pass_end")] == [False, True, False, True, True]


def test_the_data_set_that_is_named_is_evaluated(workplace):
    text = CONFIG.replace("phase:\n", "- {name: other, format: criteo, data_path: test.tsv}\nphase:\n")
    config = parse_config(
        text.replace("  validation: {data_path: test.tsv}\n", ""),
        overrides=("runner.0.evaluate_dataset_name=other",),
    )
    (summary,) = train(config)
    assert summary["validation"]["count"] == 1000
    assert summary["validation"]["auc"] == evaluate(config, dataset="other")["auc"]


def test_max_batches_ends_every_pass(workplace):
    (summary,) = train(small_config("runner.0.max_batches=4", "runner.0.epochs=3"))
    assert summary["step"] == 12
    assert [end["samples"] for end in events("pass_end")] == [400, 400, 400]


@pytest.mark.parametrize("num_workers", [1, 2, 3])
@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_last_batch_of_a_few_samples_passes_through_batch_normalisation(workplace, left, num_workers):
    lines = Path("train.tsv").read_text().splitlines(keepends=True)
    Path("odd.tsv").write_text("".join(lines[: 200 + left]))
    options = ("dataset.0.data_path=odd.tsv", "hyper_parameters.batch_norm=true", "runner.0.epochs=1")
    (summary,) = train(small_config(*options, f"phase.0.thread_num={num_workers}"))
    assert summary["step"] == 3


def test_rows_are_evicted_at_the_interval_and_at_the_end(workplace):
    evicting = "hyper_parameters.tables={embedding: {eviction: {ttl_steps: 3}}}"
    options = ("runner.0.epochs=1", "dataset.0.shuffle=none", "phase.0.thread_num=1")
    rows = {}
    for interval in (0, 2):
        name = f"run{interval}"
        train(
            small_config(
                *options, evicting, f"runner.0.evict_interval={interval}", f"runner.0.output_path={name}"
            )
        )
        rows[interval] = events("pass_end", name)[0]["table_rows"]["embedding"]
    train(small_config(*options, "runner.0.output_path=all"))
    everything = events("pass_end", "all")[0]["table_rows"]["embedding"]
    assert rows[0] == rows[2] < everything
    dense = [fingerprint(Path(f"run{interval}/checkpoints/0"))["dense"] for interval in (0, 2)]
    # A row that is evicted in between starts again from its initial value.
    assert dense[0] != dense[1]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_files_are_shuffled_by_seed_and_pass_and_a_resume_reads_on_in_the_same_order(workplace, num_workers):
    lines = Path("train.tsv").read_text().splitlines(keepends=True)
    Path("parts").mkdir()
    for number in range(6):
        Path(f"parts/{number}.tsv").write_text("".join(lines[number * 500 : number * 500 + 500]))
    options = (
        "dataset.0.data_path=parts",
        "dataset.0.shuffle=none",
        "phase.0.shuffle_filelist=true",
        f"phase.0.thread_num={num_workers}",
        "runner.0.save_step_interval=8",
    )
    config = small_config(*options)
    data = DataSet(config.dataset[0], Path(), seed=0, shuffle_files=True)
    schema = build_parts(config, config.runner[0], config.phase[0]).schema
    firsts = []
    for number in range(4):
        source = data.open(schema, number)
        firsts.append(source.next().labels.tobytes() + source.next().dense.tobytes())
        source.close()
    assert len(set(firsts)) > 1
    train(small_config(*options, "runner.0.output_path=whole"))
    train(small_config(*options, "runner.0.epochs=1"))
    shutil.rmtree("run/checkpoints")
    train(small_config(*options), resume=True)
    assert fingerprint(Path("whole/checkpoints/1")) == fingerprint(Path("run/checkpoints/1"))


def test_debug_tells_the_time_of_every_stage_and_changes_no_number(workplace, caplog):
    caplog.set_level(logging.INFO, "clickmill")
    train(small_config("runner.0.output_path=plain"))
    assert "stages pass" not in caplog.text
    train(small_config("debug=true", "runner.0.save_step_interval=10"))
    for stage in ("read", "pull", "compute", "update_dense", "update_rows", "evict", "validate", "save"):
        assert f" {stage}=" in caplog.text
    train(small_config("runner.0.output_path=again", "runner.0.save_step_interval=10"))
    assert fingerprint(Path("run/checkpoints/1")) == fingerprint(Path("again/checkpoints/1"))


def test_early_stopping_forgives_as_many_passes_as_it_says(workplace):
    for patience in (0, 2):
        options = (f"runner.0.early_stopping={{metric: auc, patience: {patience}, min_delta: 0.9}}",)
        (summary,) = train(small_config(*options, "runner.0.epochs=9"))
        # The first pass is the best for ever.
        assert summary["step"] == 31 * (2 + patience)


def test_the_best_checkpoint_is_kept_by_the_metric_that_stops_the_run(workplace):
    train(
        small_config(
            "runner.0.epochs=5",
            "runner.0.early_stopping={metric: logloss, patience: 9}",
            "runner.0.save_checkpoint_keep={last: 1, best: 1}",
            "hyper_parameters.optimizer.learning_rate=0.05",
        )
    )
    losses = [end["validation"]["logloss"] for end in events("pass_end")]
    best = losses.index(min(losses))
    assert best != 4
    assert sorted(path.name for path in Path("run/checkpoints").iterdir()) == sorted({"4", str(best)})


def test_phases_of_one_runner_have_folders_of_their_own(workplace):
    text = CONFIG.replace(
        "hyper_parameters:\n", "- {name: second, model: lr, dataset_name: log}\nhyper_parameters:\n"
    )
    first, second = train(parse_config(text, overrides=("runner.0.epochs=1",)))
    assert [first["checkpoint"], second["checkpoint"]] == [
        "run/only/checkpoints/0",
        "run/second/checkpoints/0",
    ]
    models = [
        json.loads(Path(each["checkpoint"], "checkpoint.json").read_text())["model"]
        for each in (first, second)
    ]
    assert models == ["dnn", "lr"]
