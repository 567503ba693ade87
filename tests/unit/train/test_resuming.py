"""What may change between the stop of a run and its resume, and what must not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.checkpoints import fingerprint, history
from tests.unit.train.conftest import small_config

from clickmill.errors import ConfigError, FormatError
from clickmill.train.api import evaluate, train
from clickmill.train.journal import read_journal

BATCH_NORM = """
import torch

from clickmill import nn
from layers import Scale


class Model(nn.Model):
    def __init__(self, inputs, hyper):
        super().__init__(inputs, hyper)
        table = inputs.tables["embedding"]
        width = inputs.num_dense + table.dim * len(table.slots)
        self.normal = torch.nn.BatchNorm1d(width)
        self.dropout = torch.nn.Dropout(0.3)
        self.frozen = Scale(width)
        self.out = torch.nn.Linear(width, 1)

    def forward(self, batch):
        x_BX = torch.cat([batch.dense_BF, batch.pooled["embedding"].flatten(1)], dim=1)
        return self.out(self.frozen(self.dropout(self.normal(x_BX)))).squeeze(1)
"""
LAYERS = """
import torch


class Scale(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.rand(width), requires_grad=False)

    def forward(self, x_BX):
        return x_BX * self.factor
"""


@pytest.fixture
def own_model(workplace) -> str:
    Path("model.py").write_text(BATCH_NORM)
    Path("layers.py").write_text(LAYERS)
    return "phase.0.model=model.py"


@pytest.mark.parametrize("num_workers", [1, 2, 3])
@pytest.mark.parametrize("model", ["model.py", "dnn"])
def test_running_statistics_and_masks_go_on_exactly(own_model, num_workers, model):
    """A pass of 31 batches gives the workers unequal shares of it."""
    options = (
        f"phase.0.model={model}",
        f"phase.0.thread_num={num_workers}",
        "hyper_parameters.batch_norm=true",
        "hyper_parameters.dropout=0.2",
        "runner.0.save_step_interval=10",
        "runner.0.save_checkpoint_keep={last: 1, best: 0}",
    )
    for name in ("first", "second"):
        train(small_config(*options, f"runner.0.output_path={name}"))
    assert fingerprint(Path("first/checkpoints/1")) == fingerprint(Path("second/checkpoints/1"))
    train(small_config(*options, "runner.0.epochs=1", "runner.0.output_path=halves"))
    train(small_config(*options, "runner.0.output_path=halves"), resume=True)
    assert fingerprint(Path("first/checkpoints/1")) == fingerprint(Path("halves/checkpoints/1"))
    assert history(Path("first")) == history(Path("halves"))


def test_a_finished_run_goes_on_when_it_is_given_more_passes(workplace):
    train(small_config("runner.0.output_path=whole", "runner.0.epochs=3"))
    train(small_config("runner.0.epochs=2"))
    (again,) = train(small_config("runner.0.epochs=2"), resume=True)
    assert again["step"] == 62
    (more,) = train(small_config("runner.0.epochs=3"), resume=True)
    assert more["step"] == 93
    assert fingerprint(Path("whole/checkpoints/2")) == fingerprint(Path("run/checkpoints/2"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("phase.0.model=deepfm", r"`phase\.model` was \"dnn\", is \"deepfm\""),
        ("hyper_parameters.fc_sizes=[16]", r"`hyper_parameters\.fc_sizes` was \[16, 8\], is \[16\]"),
        ("hyper_parameters.sparse_feature_dim=8", "`hyper_parameters.sparse_feature_dim` was 4, is 8"),
        ("hyper_parameters.optimizer.class=SGD", "`hyper_parameters.optimizer.class`"),
        ("hyper_parameters.sparse_feature_number=1000", r"`slots\.C1\.hash_size`"),
        ("runner.0.seed=1", r"`runner\.seed` was 0, is 1"),
        ("dataset.0.batch_size=50", r"`dataset\.batch_size` was 100, is 50"),
        ("dataset.0.shuffle.rows=500", r"`dataset\.shuffle\.rows`"),
    ],
)
def test_what_gives_the_state_its_meaning_must_not_change(workplace, change, words):
    train(small_config("runner.0.epochs=1"))
    before = fingerprint(Path("run/checkpoints/0"))
    with pytest.raises(ConfigError, match=words) as caught:
        train(small_config(change), resume=True)
    assert "cannot resume from `run/checkpoints/0`" in str(caught.value)
    assert "init_model_path: run/checkpoints/0" in str(caught.value.hint)
    assert fingerprint(Path("run/checkpoints/0")) == before
    assert list(read_journal(Path("run")))[-1]["event"] == "saved"


def test_a_changed_model_file_is_refused(own_model):
    train(small_config(own_model, "runner.0.epochs=1"))
    Path("model.py").write_text(BATCH_NORM.replace("0.3", "0.4"))
    with pytest.raises(ConfigError, match=r"the text of `model\.py` is not that of"):
        train(small_config(own_model), resume=True)


@pytest.mark.parametrize(
    "change",
    ["hyper_parameters.optimizer.learning_rate=0.001", "phase.0.thread_num=1", "runner.0.clip_norm=1"],
)
def test_what_changes_the_numbers_is_told_and_in_the_journal(workplace, change, caplog):
    train(small_config("runner.0.epochs=1"))
    (summary,) = train(small_config(change), resume=True)
    assert summary["step"] == 62
    key = change.partition("=")[0].replace(".0.", ".")
    assert f"`{key}` was" in caplog.text
    resumed = [event for event in read_journal(Path("run")) if event["event"] == "run_start"][-1]
    assert key in resumed["changes"][0]


def test_what_is_only_told_or_written_otherwise_changes_nothing(workplace, caplog):
    train(small_config("runner.0.output_path=whole"))
    train(small_config("runner.0.epochs=1"))
    train(small_config("runner.0.print_interval=3", "dataset.0.threads=1"), resume=True)
    assert "another configuration" not in caplog.text
    assert fingerprint(Path("whole/checkpoints/1")) == fingerprint(Path("run/checkpoints/1"))


def test_a_damaged_newest_checkpoint_is_named_with_the_way_to_the_one_before(workplace):
    options = ("runner.0.save_step_interval=10", "runner.0.epochs=1")
    train(small_config(*options))
    whole = fingerprint(Path("run/checkpoints/0"))
    path = Path("run/checkpoints/0/trainer.json")
    path.write_text(path.read_text().replace("2", "3", 1))
    with pytest.raises(FormatError, match=r"trainer\.json is damaged") as caught:
        train(small_config(*options), resume=True)
    assert caught.value.hint == "remove `run/checkpoints/0` to resume from the one before it"
    shutil.rmtree("run/checkpoints/0")
    train(small_config(*options), resume=True)
    assert fingerprint(Path("run/checkpoints/0")) == whole


def test_a_damaged_manifest_is_named_with_the_way_to_the_one_before(workplace):
    options = ("runner.0.save_step_interval=10", "runner.0.epochs=1")
    train(small_config(*options))
    Path("run/checkpoints/0/checkpoint.json").write_text("{")
    with pytest.raises(FormatError, match=r"run/checkpoints/0/checkpoint\.json is damaged") as caught:
        train(small_config(*options), resume=True)
    assert caught.value.hint == "remove `run/checkpoints/0` to resume from the one before it"


def test_a_difference_without_its_base_says_what_it_builds_on(workplace):
    options = (
        "runner.0.save_step_interval=10",
        "runner.0.save_step_full_interval=3",
        "runner.0.epochs=1",
    )
    train(small_config(*options))
    shutil.rmtree("run/checkpoints")
    shutil.rmtree("run/steps/epoch_0_batch_10")
    with pytest.raises(FormatError, match="holds what has changed since") as caught:
        train(small_config(*options), resume=True)
    assert "checkpoint `run/steps/epoch_0_batch_20`" in str(caught.value)
    assert "`run/steps/epoch_0_batch_10`, which is not there" in str(caught.value)
    assert caught.value.hint == (
        "bring that back, or remove `run/steps/epoch_0_batch_30` to resume from the one before it"
    )


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"id": 3}', "\xff"])
def test_a_damaged_run_file_is_named_and_can_be_written_again(workplace, text):
    train(small_config("runner.0.epochs=1"))
    whole = Path("run/run.json").read_text()
    Path("run/run.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError, match=r"run/run\.json is damaged") as caught:
        train(small_config(), resume=True)
    assert caught.value.hint is not None
    assert f"write `{whole}` into it" in caught.value.hint
    with pytest.raises(FormatError, match=r"run/run\.json is damaged"):
        evaluate(small_config())
    Path("run/run.json").write_text(whole)
    train(small_config(), resume=True)
    assert Path("run/checkpoints/1").is_dir()


def test_a_new_run_does_not_need_the_damaged_file_of_an_old_one(workplace):
    train(small_config("runner.0.epochs=1"))
    Path("run/run.json").write_text("{")
    train(small_config("runner.0.epochs=1"))
    assert evaluate(small_config())["samples"] == 1000


def resume_refusal(caplog, *overrides: str) -> str:
    """How a resume inside the first pass is refused: before it says that it goes on."""
    shutil.rmtree("run/checkpoints", ignore_errors=True)
    caplog.clear()
    caplog.set_level("INFO", logger="clickmill.train")
    with pytest.raises(ConfigError, match="cannot resume in the middle of pass 0") as caught:
        train(small_config("runner.0.save_step_interval=10", *overrides), resume=True)
    assert "run.started" not in caplog.text
    assert caught.value.hint is not None
    return str(caught.value)


def test_other_files_are_refused_by_their_names(workplace, caplog):
    train(small_config("runner.0.epochs=1", "runner.0.save_step_interval=10"))
    Path("other.tsv").symlink_to("train.tsv")
    message = resume_refusal(caplog, "dataset.0.data_path=other.tsv")
    assert message.endswith("\n  `train.tsv` is not among them any more\n  `other.tsv` is new")
    message = resume_refusal(caplog, "dataset.0.data_path=[train.tsv, other.tsv]")
    assert message.endswith("\n  `other.tsv` is new")


def test_files_in_another_order_are_refused(workplace, caplog):
    options = ("runner.0.epochs=1", "runner.0.save_step_interval=10")
    train(small_config(*options, "dataset.0.data_path=[train.tsv, test.tsv]"))
    message = resume_refusal(caplog, "dataset.0.data_path=[test.tsv, train.tsv]")
    assert message.endswith("they stand in another order")


def test_a_log_that_has_grown_is_named_with_its_sizes(workplace, caplog):
    log = Path("train.tsv").read_bytes()
    Path("train.tsv").unlink()
    Path("train.tsv").write_bytes(log)
    train(small_config("runner.0.epochs=1", "runner.0.save_step_interval=10"))
    Path("train.tsv").write_bytes(log + log)
    message = resume_refusal(caplog)
    assert message.endswith(f"\n  `train.tsv` had {len(log)} bytes, has {len(log) * 2}")


def test_between_passes_a_log_may_grow(workplace):
    log = Path("train.tsv").read_bytes()
    train(small_config("runner.0.epochs=1"))
    Path("train.tsv").unlink()
    Path("train.tsv").write_bytes(log + log)
    (summary,) = train(small_config(), resume=True)
    assert summary["step"] == 31 + 61


def test_evaluation_does_not_ask_for_the_optimizer_of_the_checkpoint(workplace):
    (summary,) = train(small_config("runner.0.epochs=1"))
    result = evaluate(small_config("hyper_parameters.optimizer={class: SGD}"))
    assert result["auc"] == summary["validation"]["auc"]
