from __future__ import annotations

import io
import logging
import sys

import pytest
from rich.console import Console

from clickmill.cli.live import LiveProgress, interval_words, pass_words
from clickmill.store.remote.watching import Transfer
from clickmill.train.observer import Interval, PassEnd, RunStart

START = RunStart(model="dnn", num_parameters=10, num_workers=2, passes=2, resumed_from=None)
INTERVAL = Interval(
    pass_number=0, batch=10, step=10, samples=10_000, loss=0.45, learning_rate=0.001,
    metrics={"auc": 0.75, "batch_auc": 0.7, "logloss": 0.4}, samples_per_second=31_204.4,
)  # fmt: skip
PASS_END = PassEnd(
    pass_number=0, step=20, samples=20_000, seconds=2.0, train={"auc": 0.76, "logloss": 0.5},
    validation={"auc": 0.77}, bad_lines=0, table_rows={"embedding": 5},
)  # fmt: skip


def test_words_of_an_interval_have_rate_loss_and_auc() -> None:
    assert interval_words(INTERVAL) == "31,204 samples/s  loss 0.4500  auc 0.7500  batch_auc 0.7000"


def test_words_of_a_pass_prefer_the_validation() -> None:
    assert pass_words(PASS_END) == "10,000 samples/s  validation auc 0.7700"


def test_bar_shows_each_pass_and_may_be_used_for_another_run() -> None:
    screen = io.StringIO()
    live = LiveProgress(Console(file=screen, force_terminal=True, width=160, highlight=False))
    for _ in range(2):
        live.run_start(START)
        live.pass_start(0, 1000)
        live.advance(100, 500)
        live.interval(INTERVAL)
        live.pass_end(PASS_END)
        live.close()
        output = screen.getvalue()
        screen.truncate(0)
        for words in ("pass 1/2", "50%", "100 samples", "validation auc 0.7700"):
            assert words in output


def test_files_on_their_way_have_rows_of_their_own() -> None:
    screen = io.StringIO()
    live = LiveProgress(Console(file=screen, force_terminal=True, width=160, highlight=False))
    live.run_start(START)
    live.pass_start(0, 1000)
    with Transfer("downloaded", "s3://bucket/part-0.gz", 3 << 20) as transfer:
        transfer.advance(1 << 20)
        live.close()
    assert "download part-0.gz" in screen.getvalue()
    assert "3.0 MiB" in screen.getvalue()


def test_log_lines_go_through_the_bar_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("clickmill")
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    handler = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logger, "handlers", [handler])
    live = LiveProgress(Console(file=screen, force_terminal=True, width=80))
    live.run_start(START)
    assert handler.stream is not screen
    live.close()
    assert handler.stream is screen


def test_events_before_a_run_and_after_its_end_are_ignored() -> None:
    live = LiveProgress(Console(file=io.StringIO(), force_terminal=True))
    live.advance(1, 1)
    live.interval(INTERVAL)
    live.close()
    live.close()
