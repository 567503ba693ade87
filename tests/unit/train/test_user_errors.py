"""What a user meets when something is wrong: a code, one clear sentence, and what to do."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from tests.checkpoints import fingerprint
from tests.small_files import small_files
from typer.testing import CliRunner, Result

from clickmill.cli.main import app
from clickmill.store.lock import only_writer
from clickmill.train.journal import read_journal

CSV = "dataset.0={name: log, format: csv, data_path: log.csv, schema: {slots: [{kind: label, name: y}, %s]}}"


def run_train(*overrides: str, resume: bool = False) -> Result:
    options = [word for override in overrides for word in ("--set", override)]
    arguments = ["train", "-m", "config.yaml", *options, *(["--resume"] if resume else [])]
    return CliRunner().invoke(app, arguments)


def assert_told(result: Result, code: int, *words: str) -> None:
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code
    for word in words:
        assert word in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture
def damaged(workplace) -> Path:
    """Files with something wrong in each."""
    good = Path("train.tsv").read_bytes()
    lines = good.splitlines(keepends=True)
    Path("empty.tsv").write_bytes(b"")
    Path("bad.tsv").write_bytes(b"garbage\n" * 50)
    Path("some_bad.tsv").write_bytes(b"".join(lines[:250] + [b"garbage\n"] * 5 + lines[250:500]))
    Path("few.tsv").write_bytes(b"".join(lines[:30]))
    Path("cut.gz").write_bytes(gzip.compress(good)[: len(good) // 8])
    Path("no_click.tsv").write_bytes(b"".join(b"0" + line[1:] for line in lines[:300]))
    Path("log.csv").write_text("y,a\n" + "1,x\n0,y\n" * 40)
    return workplace


@pytest.mark.parametrize(
    ("overrides", "code", "words"),
    [
        (["dataset.0.data_path=nope.tsv"], 3, ["nope.tsv`: no such file", "hint: "]),
        (["dataset.0.validation.data_path=nope.tsv"], 3, ["nope.tsv`: no such file"]),
        (["dataset.0.data_path=empty.tsv"], 3, ["no sample in 1 files, the first is empty.tsv"]),
        (["dataset.0.data_path=bad.tsv"], 3, ["bad.tsv:1:", "expected 40 columns, found 1"]),
        (
            ["dataset.0.data_path=bad.tsv", "dataset.0.max_bad_lines=null"],
            3,
            ["no sample in 1 files", "50 lines were bad"],
        ),
        (["dataset.0.data_path=some_bad.tsv", "dataset.0.max_bad_lines=4"], 3, ["max_bad_lines is 4"]),
        (["dataset.0.data_path=cut.gz"], 3, ["cut.gz: damaged"]),
        (
            ["dataset.0.data_path=few.tsv", "dataset.0.keep_last=false"],
            3,
            ["pass 0 had no batch", "`keep_last: true`"],
        ),
        ([CSV % "{kind: sparse, name: ghost}"], 3, ["`ghost`"]),
        (["dataset.0.data_converter=nope.py"], 2, ["`data_converter` names `nope.py`"]),
        (["runner.0.init_model_path=nope"], 3, ["no checkpoint at `nope`"]),
        (["runner.0.output_path=train.tsv/run"], 1, ["`train.tsv/run`: Not a directory"]),
        (["runner.0.save_checkpoint_path=train.tsv/x"], 1, ["`train.tsv/x`: Not a directory"]),
    ],
)
def test_the_error_names_the_place_and_has_its_code(damaged, overrides, code, words):
    assert_told(run_train(*overrides), code, *words)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("{name: b, class: infer}", "needs `init_model_path`"),
        ("{name: b, class: cluster_train}", "a cluster"),
    ],
)
def test_a_second_runner_that_cannot_run_is_found_before_the_first_starts(workplace, second, words):
    text = Path("config.yaml").read_text().replace("dataset:", f"- {second}\ndataset:", 1)
    Path("config.yaml").write_text(text.replace("mode: train", "mode: [train, b]"))
    assert_told(run_train(), 2, "config.yaml:11:", "`runner.1.class`", words)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("hyper_parameters.dropout", "2", "allowed: a number, 0.0 to less than 1.0"),
        ("runner.0.learning_rate_schedule", "{class: plateau, metric: foo}", "there is no metric `foo`"),
        ("runner.0.early_stopping", "{metric: foo}", "there is no metric `foo`"),
    ],
)
def test_what_only_the_model_knows_to_be_wrong_has_its_place_too(workplace, key, value, words):
    place = f"--set {key}: `{key}"
    assert_told(run_train(f"{key}={value}"), 2, place, words)
    assert not Path("run/journal.jsonl").exists()


def test_a_network_that_does_not_fit_into_memory_is_no_traceback(workplace):
    result = run_train("hyper_parameters.fc_sizes=[10000000, 10000000]")
    assert_told(result, 1, "error: not enough memory: ", "TiB", "hint: make the model")


def test_a_disk_that_is_full_from_the_start_names_the_file(workplace):
    with small_files(0):
        assert_told(run_train(), 1, "cannot write `run/.lock`: File too large")
    with small_files(100):
        assert_told(run_train(), 1, "cannot write `run/config.json`: File too large")


def test_scores_and_pages_that_do_not_fit_are_named(workplace):
    assert run_train("runner.0.epochs=1").exit_code == 0
    infer = ["infer", "-m", "config.yaml", "-o", "scores.txt"]
    report = ["report", "run", "-o", "page.html"]
    with small_files(1000):
        assert_told(CliRunner().invoke(app, infer), 1, "cannot write `scores.txt`: File too large")
        assert_told(CliRunner().invoke(app, report), 1, "cannot write `page.html`: File too large")
    assert not Path("scores.txt").exists()


def test_a_report_of_a_run_without_an_event_says_so(workplace):
    Path("run").mkdir()
    Path("run/journal.jsonl").touch()
    assert_told(CliRunner().invoke(app, ["report", "run"]), 3, "the journal of `run` is empty")
    assert not Path("run/report.html").exists()


UNLABELLED = 'dataset.0={name: log, data_path: slots.txt, sparse_slots: "1 2", label_slot: ""}'


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_data_set_without_label_is_refused_before_it_is_read(workplace, command):
    """Nor is the file there."""
    result = CliRunner().invoke(app, [command, "-m", "config.yaml", "--set", UNLABELLED])
    assert_told(result, 2, "data set `log` has no label", "hint: name it with `label_slot`")


def test_validation_without_samples_is_found_before_training(damaged):
    result = run_train("dataset.0.validation.data_path=empty.tsv")
    assert_told(result, 3, "no sample in 1 files, the first is empty.tsv")
    assert "TRAIN -->" not in result.stderr


def test_bad_lines_that_are_allowed_are_counted_in_summary_and_journal(damaged):
    result = run_train("dataset.0.data_path=some_bad.tsv", "dataset.0.max_bad_lines=5", "runner.0.epochs=1")
    assert result.exit_code == 0
    assert "skipped 5 bad lines" in result.stderr
    assert [line.split()[1] for line in result.stdout.splitlines() if "bad_lines" in line] == ["5"]
    (end,) = (event for event in read_journal(Path("run")) if event["event"] == "pass_end")
    assert end["bad_lines"] == 5
    assert end["samples"] == 500


def test_a_log_of_one_class_trains_and_its_undefined_metrics_are_null(damaged):
    result = run_train("dataset.0.data_path=no_click.tsv", "runner.0.epochs=1")
    assert result.exit_code == 0
    (end,) = (event for event in read_journal(Path("run")) if event["event"] == "pass_end")
    assert end["train"]["ne"] is None
    assert CliRunner().invoke(app, ["report", "run"]).exit_code == 0


def test_a_run_that_diverges_stops_and_saves_nothing_of_it(workplace):
    """Pass 0 is sound; pass 1 has the rate of pass 0 times 1e30."""
    sound = ("runner.0.epochs=1", "hyper_parameters.optimizer={class: SGD, learning_rate: 0.01}")
    assert run_train(*sound).exit_code == 0
    before = fingerprint(Path("run/checkpoints/0"))
    result = run_train("hyper_parameters.optimizer={class: SGD, learning_rate: 1e30}", resume=True)
    assert_told(result, 1, "training has diverged: ", " at pass 1, batch ", "hint: lower the learning rate")
    assert [path.name for path in Path("run/checkpoints").iterdir()] == ["0"]
    assert fingerprint(Path("run/checkpoints/0")) == before
    again = run_train(*sound[1:], resume=True)
    assert again.exit_code == 0


def test_parameters_that_a_last_step_broke_are_not_saved(workplace):
    """The loss of the only batch is a number; the parameters after it are not."""
    overflow = ("hyper_parameters.optimizer={class: SGD, learning_rate: 1e30}", "hyper_parameters.reg=1e30")
    result = run_train("runner.0.max_batches=1", *overflow)
    assert_told(result, 1, "a dense parameter is not finite at pass 0, batch 0")
    assert not Path("run/checkpoints").exists()


def test_a_folder_in_use_is_refused_before_anything_in_it_changes(workplace):
    assert run_train("runner.0.epochs=1").exit_code == 0
    partial = Path("run/checkpoints/.1.partial-1-x")
    partial.mkdir()
    journal = Path("run/journal.jsonl").read_bytes()
    with only_writer(Path("run")):
        assert_told(run_train(), 1, "folder `run` is in use by another run, process ", "`output_path`")
    assert partial.is_dir()
    assert Path("run/journal.jsonl").read_bytes() == journal
    assert run_train("runner.0.epochs=1").exit_code == 0
    assert not partial.exists()


def test_a_checkpoint_folder_elsewhere_is_held_as_well(workplace):
    options = ("runner.0.epochs=1", "runner.0.save_checkpoint_path=kept")
    with only_writer(Path("kept")):
        assert_told(run_train(*options), 1, "folder `kept` is in use")
    assert run_train(*options).exit_code == 0
    assert Path("kept/0/checkpoint.json").is_file()


BREAKING_MODEL = """
import torch
from clickmill.nn import Model as Base


class Model(Base):
    '''Its dense part never learns; in its third batch one row of the table gets a gradient of NaN.'''

    def __init__(self, inputs, hyper):
        super().__init__(inputs, hyper)
        self.bias = torch.nn.Parameter(torch.zeros(1))
        self.calls = 0

    def forward(self, batch):
        pooled_BSD = batch.pooled["embedding"]
        if self.training:
            self.calls += 1
            if self.calls == 3:
                pooled_BSD.register_hook(self.break_one)
        return pooled_BSD.sum(dim=(1, 2)) * 0.01 + self.bias.detach() + 0.0 * self.bias

    @staticmethod
    def break_one(gradient_BSD):
        broken_BSD = gradient_BSD.clone()
        broken_BSD[0, 0, 2] = float("nan")
        return broken_BSD
"""


@pytest.mark.parametrize("validation", ["{data_path: test.tsv}", "null"])
def test_a_row_that_a_last_step_broke_is_named_and_not_saved(workplace, validation):
    """The loss of the last batch is a number, and so is every dense parameter; one row is not."""
    Path("model.py").write_text(BREAKING_MODEL)
    options = ("phase.0.model=model.py", "phase.0.thread_num=1", "runner.0.max_batches=3")
    result = run_train(*options, f"dataset.0.validation={validation}")
    assert_told(
        result,
        1,
        "training has diverged: table `embedding`: the row of sign ",
        "is not finite: ",
        " at pass 0, batch 2",
        "hint: lower the learning rate",
    )
    assert not list(Path("run").glob("checkpoints/*"))
