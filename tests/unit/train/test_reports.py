"""What a run leaves for people to look at: TensorBoard events and the report."""

from __future__ import annotations

import shutil
import warnings
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.unit.train.conftest import small_config

from clickmill.train.api import train
from clickmill.train.journal import read_journal
from clickmill.train.report import write_report

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Checker(HTMLParser):
    """Every element is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_tensorboard_reads_the_scalars_of_a_run(workplace):
    pytest.importorskip("tensorboard")
    train(small_config("runner.0.tensorboard_path=board"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator("board")
        events.Reload()
    journal = list(read_journal(Path("run")))
    intervals = [event for event in journal if event["event"] == "interval"]
    loss = events.Scalars("train/loss")
    assert [point.step for point in loss] == [event["step"] for event in intervals]
    assert [point.value for point in loss] == pytest.approx([event["loss"] for event in intervals])
    ends = [event for event in journal if event["event"] == "pass_end"]
    points = events.Scalars("validation/auc")
    assert [point.value for point in points] == pytest.approx([end["validation"]["auc"] for end in ends])


def test_tensorboard_sees_each_step_of_a_resumed_run_once(workplace):
    pytest.importorskip("tensorboard")
    options = ("runner.0.tensorboard_path=board", "runner.0.save_step_interval=10")
    train(small_config(*options, "runner.0.epochs=1"))
    shutil.rmtree("run/checkpoints")  # as if it had been killed after its 30th batch
    train(small_config(*options), resume=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator("board")
        events.Reload()
    steps = [point.step for point in events.Scalars("train/loss")]
    assert steps == [event["step"] for event in read_journal(Path("run")) if event["event"] == "interval"]


def test_the_report_is_well_formed_and_holds_the_curves(workplace):
    train(small_config("runner.0.early_stopping={metric: auc, patience: 0, min_delta: 0.9}"))
    page = write_report(Path("run")).read_text()
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    words = " ".join(checker.text)
    for title in ("AUC", "Log loss", "Calibration", "Samples per second", "Learning rate", "early stopping"):
        assert title in words
    pictures = [part.split("</svg>")[0] + "</svg>" for part in page.split("<figure>")[1:]]
    assert len(pictures) >= 5
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        curves = [each for each in root.iter() if each.tag.endswith(("polyline", "path"))]
        assert curves, picture[:200]
    assert page.startswith("<!doctype html>")
