"""Labels that the model cannot learn are bad lines, with their place, in whatever format they come."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.train.conftest import small_config

from clickmill.errors import DataError
from clickmill.train.api import evaluate, infer, train

SLOTS = "{slots: [{kind: label, name: y%s}, {kind: sparse, name: a}]}"
READER = """
class Reader:
    def __iter__(self):
        for row in range(40):
            yield {"y": 2 if row == 7 else row % 2, "a": f"v{row % 5}"}
"""
SHORT = ("runner.0.epochs=1", "dataset.0.validation=null")


def spoil(line: int, label: bytes) -> None:
    """Give one line of the training log another label."""
    lines = Path("train.tsv").read_bytes().splitlines(keepends=True)
    lines[line - 1] = label + lines[line - 1][1:]
    Path("train.tsv").unlink()
    Path("train.tsv").write_bytes(b"".join(lines))


@pytest.mark.parametrize("label", ["2", "0.5", "-1"])
def test_a_label_that_is_not_binary_is_named_with_its_line_despite_the_shuffle(workplace, label):
    spoil(1234, label.encode())
    with pytest.raises(DataError, match=rf"train\.tsv:1234:1: label `label`: `{label}` is neither 0 nor 1"):
        train(small_config(*SHORT))


def test_labels_that_are_not_binary_count_as_bad_lines(workplace):
    spoil(1234, b"2")
    spoil(2345, b"3")
    (summary,) = train(small_config(*SHORT, "dataset.0.max_bad_lines=2"))
    assert summary["bad_lines"] == 2
    with pytest.raises(DataError, match="2 bad lines, max_bad_lines is 1"):
        train(small_config(*SHORT, "dataset.0.max_bad_lines=1"))


def test_a_label_that_is_not_binary_is_refused_in_evaluation(workplace):
    train(small_config("runner.0.epochs=1"))
    spoil(3, b"2")
    with pytest.raises(DataError, match=r"train\.tsv:3:1: label `label`: `2` is neither"):
        evaluate(small_config("dataset.0.validation=null"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("slots", "y:2 a:3\n"),
        ("csv", "y,a\n2,3\n"),
        ("libsvm", "2 3:1\n"),
        ("show_click", "5 2 3:a\n"),
        ("{kind: delimited, delimiter: ' ', columns: [y, a]}", "2 3\n"),
    ],
)
def test_every_format_names_the_line(workplace, kind, text):
    names = {"libsvm": ("label", "features"), "show_click": ("click", "a")}
    label, sparse = names.get(kind, ("y", "a"))
    schema = f"{{slots: [{{kind: label, name: {label}}}, {{kind: sparse, name: {sparse}}}]}}"
    Path("log.txt").write_text(text)
    line = text.count("\n")
    config = f"dataset.0={{name: log, format: {kind}, data_path: log.txt, schema: {schema}}}"
    with pytest.raises(DataError, match=rf"log\.txt:{line}:\d+: label `{label}`: `2` is neither 0 nor 1"):
        train(small_config("runner.0.epochs=1", config))


def test_a_transform_that_makes_labels_binary_lets_any_number_in(workplace):
    Path("log.csv").write_text("y,a\n" + "5,x\n2,y\n" * 40)
    schema = SLOTS % ", transform: {kind: threshold, at: 4}"
    log = f"dataset.0={{name: log, format: csv, data_path: log.csv, schema: {schema}}}"
    (summary,) = train(small_config("runner.0.epochs=1", log))
    assert summary["train"]["actual_ctr"] == 0.5


def test_a_regression_takes_any_label(workplace):
    Path("model.py").write_text(
        "import torch\n"
        "from clickmill import nn\n\n\n"
        "class Model(nn.Model):\n"
        "    task = 'regression'\n\n"
        "    def __init__(self, inputs, hyper):\n"
        "        super().__init__(inputs, hyper)\n"
        "        self.bias = torch.nn.Parameter(torch.zeros(1))\n\n"
        "    def forward(self, batch):\n"
        "        return batch.pooled['embedding'].sum((1, 2)) + self.bias\n\n"
        "    def loss(self, logit_B, label_B, weight_B=None):\n"
        "        return ((logit_B - label_B) ** 2).mean()\n\n"
        "    def predict(self, logit_B):\n"
        "        return logit_B\n"
    )
    Path("log.csv").write_text("y,a\n" + "5,x\n2,y\n" * 40)
    log = f"dataset.0={{name: log, format: csv, data_path: log.csv, schema: {SLOTS % ''}}}"
    (summary,) = train(small_config("runner.0.epochs=1", "phase.0.model=model.py", log))
    assert summary["train"]["mean_label"] == 3.5


def test_records_of_a_users_reader_are_named_by_their_number(workplace):
    Path("reader.py").write_text(READER)
    log = f"{{name: log, data_path: train.tsv, data_converter: reader.py, schema: {SLOTS % ''}}}"
    with pytest.raises(DataError, match="Reader: record 7: key `y`: label `y`: `2` is neither 0 nor 1"):
        train(small_config("runner.0.epochs=1", f"dataset.0={log}"))
    (summary,) = train(small_config("runner.0.epochs=1", f"dataset.0={log}", "dataset.0.max_bad_lines=1"))
    assert summary["bad_lines"] == 1


def test_rows_of_parquet_are_named_by_their_number(workplace):
    labels = [2 if row == 7 else row % 2 for row in range(40)]
    table = pa.table({"y": labels, "a": [f"v{row % 5}" for row in range(40)]})
    Path("log").mkdir()
    pq.write_table(table.slice(20), "log/0.parquet")
    pq.write_table(table.slice(0, 20), "log/1.parquet")
    log = f"{{name: log, format: parquet, data_path: log, schema: {SLOTS % ''}}}"
    with pytest.raises(
        DataError, match=r"log/1\.parquet: record 7: key `y`: label `y`: `2` is neither 0 nor 1"
    ):
        train(small_config("runner.0.epochs=1", f"dataset.0={log}"))
    (summary,) = train(small_config("runner.0.epochs=1", f"dataset.0={log}", "dataset.0.max_bad_lines=1"))
    assert summary["bad_lines"] == 1


def scores(*overrides: str, data: str) -> list[str]:
    infer(small_config(f"dataset.0.data_path={data}", "dataset.0.validation=null", *overrides), Path("s.txt"))
    return Path("s.txt").read_text().splitlines()


@pytest.mark.parametrize("options", [(), ("dataset.0.format={kind: criteo, has_label: false}",)])
def test_samples_without_label_are_scored(workplace, options):
    train(small_config("runner.0.epochs=1"))
    lines = Path("test.tsv").read_bytes().splitlines(keepends=True)
    Path("unlabelled.tsv").write_bytes(b"".join(line.partition(b"\t")[2] for line in lines))
    Path("unknown.tsv").write_bytes(b"".join(b"?" + line[1:] for line in lines))
    expected = scores(data="test.tsv")
    assert len(expected) == 1000
    assert scores(*options, data="unlabelled.tsv") == expected
    assert scores(data="unknown.tsv") == expected


@pytest.mark.parametrize("slots", ["click 1 2", "1 2"])
def test_slot_text_without_label_weight_and_group_is_scored(workplace, slots):
    schema = (
        "{slots: [{kind: label, name: click}, {kind: weight, name: w}, {kind: group, name: user}, "
        "{kind: sparse, name: '1'}, {kind: sparse, name: '2'}]}"
    )
    rows = [f"1:{row} 2:{row % 7}\n" for row in range(200)]
    Path("log.txt").write_text("".join(f"click:{n % 2} w:1 user:u {row}" for n, row in enumerate(rows)))
    Path("bare.txt").write_text("".join(rows))
    log = f"dataset.0={{name: log, format: slots, data_path: log.txt, schema: {schema}}}"
    train(small_config("runner.0.epochs=1", log))
    unlabelled = f'dataset.0={{name: log, data_path: log.txt, sparse_slots: "{slots}", label_slot: ""}}'
    expected = scores(log, data="log.txt")
    assert len(set(expected)) > 1
    assert scores(log, data="bare.txt") == expected
    assert scores(unlabelled, data="bare.txt") == expected


def test_a_runner_of_class_infer_scores_samples_without_label(workplace):
    train(small_config("runner.0.epochs=1"))
    lines = Path("test.tsv").read_bytes().splitlines(keepends=True)
    Path("unlabelled.tsv").write_bytes(b"".join(line.partition(b"\t")[2] for line in lines))
    runner = "{name: train, class: infer, init_model_path: run/checkpoints/0, runner_result_dump_path: i.txt}"
    config = small_config(
        f"runner.0={runner}", "dataset.0.data_path=unlabelled.tsv", "dataset.0.validation=null"
    )
    (summary,) = train(config)
    assert summary["samples"] == 1000
