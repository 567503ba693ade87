"""The live progress bar of a training run, on stderr where that is a terminal."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from clickmill.cli.output import bytes_text
from clickmill.store.remote.watching import unwatch, watch
from clickmill.train.observer import Interval, Observer, PassEnd, RunStart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.progress import TaskID

REFRESHES_PER_SECOND = 4
"""Drawing takes time from the workers."""


_WIDE = 120
"""Columns from which there is room for everything."""


class LiveProgress(Observer):
    """One bar for each pass, by bytes of the data: with samples per second, what is left, loss and metrics.

    Log lines go through the same console while the bar is shown, so that neither tears the other.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._passes = 1
        self._samples = 0
        self._task: TaskID | None = None
        self._transfers: Transfers | None = None
        self._moved: list[tuple[logging.StreamHandler[Any], Any]] = []

    def run_start(self, event: RunStart) -> None:
        self._passes = event.passes
        # Rich would cut words in the middle: a narrow terminal gets fewer of them.
        is_wide = self._console.width >= _WIDE
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(40 if is_wide else 12),
            TextColumn("{task.percentage:>3.0f}%"),
            *((TextColumn("{task.fields[count]}"), TimeElapsedColumn()) if is_wide else ()),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
        )
        before = sys.stderr
        self._bar.start()
        # rich has put its own stderr in place; a handler that holds the old one would write across the bar.
        for handler in logging.getLogger("clickmill").handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is before:
                self._moved.append((handler, handler.setStream(sys.stderr)))
        self._transfers = Transfers(self._bar)
        watch(self._transfers)

    def pass_start(self, pass_number: int, total_bytes: int) -> None:
        if self._bar is None:
            return
        words = f"pass {pass_number + 1}/{max(self._passes, pass_number + 1)}"
        self._task = self._bar.add_task(words, total=total_bytes or None, count="", words="")
        self._samples = 0

    def advance(self, samples: int, bytes_done: int) -> None:
        if self._bar is not None and self._task is not None:
            self._samples += samples
            self._bar.update(self._task, completed=bytes_done, count=f"{self._samples:,} samples")

    def interval(self, event: Interval) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, words=interval_words(event))

    def pass_end(self, event: PassEnd) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, words=pass_words(event))
            self._bar.stop_task(self._task)
            self._task = None

    def close(self) -> None:
        if self._transfers is not None:
            unwatch(self._transfers)
            self._transfers = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        for handler, stream in self._moved:
            if stream is not None:
                handler.setStream(stream)
        self._moved.clear()


class Transfers:
    """A row for each file on its way, while it is; called on the threads that bring it."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._rows: dict[int, TaskID] = {}

    def begin(self, number: int, words: str, num_bytes: int) -> None:
        """A row more."""
        count = bytes_text(num_bytes)
        self._rows[number] = self._bar.add_task(words, total=num_bytes or None, count=count, words="")

    def advance(self, number: int, num_bytes: int) -> None:
        """So much of it is there."""
        self._bar.advance(self._rows[number], num_bytes)

    def end(self, number: int) -> None:
        """A row less."""
        self._bar.remove_task(self._rows.pop(number))


def interval_words(event: Interval) -> str:
    """`31,204 samples/s  loss 0.4512  auc 0.7611`."""
    shown = ("auc", "batch_auc") if "auc" in event.metrics else ("rmse",)
    rate = f"{event.samples_per_second:,.0f} samples/s"
    return "  ".join([rate, f"loss {event.loss:.4f}", *_words(event.metrics, shown)])


def pass_words(event: PassEnd) -> str:
    """What a pass came to: the validation where there is one, else the training metrics."""
    metrics, prefix = (event.validation, "validation ") if event.validation else (event.train, "")
    shown = ("auc", "logloss") if "auc" in metrics else ("rmse",)
    rate = event.samples / event.seconds if event.seconds > 0 else 0.0
    return "  ".join([f"{rate:,.0f} samples/s", *(prefix + words for words in _words(metrics, shown))])


def _words(metrics: Mapping[str, float], shown: tuple[str, ...]) -> list[str]:
    return [f"{name} {metrics[name]:.4f}" for name in shown if name in metrics]
