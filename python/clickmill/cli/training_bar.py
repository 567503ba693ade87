"""The live display of a training run: one bar a pass, with speed, time left, loss and AUC."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from clickmill.train.observer import Interval, Observer, PassEnd

if TYPE_CHECKING:
    from rich.progress import TaskID

_REFRESHES_PER_SECOND = 4
"""Drawing takes time from the workers."""


class TrainingBar(Observer):
    """Follows the bytes read, which are known before the samples are; log lines scroll above the bar."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("pass {task.fields[pass_number]}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[samples]:,} samples"),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[metrics]}"),
            console=console,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
        )
        self._task: TaskID | None = None
        self._samples = 0
        self._logger = logging.getLogger("clickmill")
        self._handlers = list(self._logger.handlers)
        self._logger.handlers[:] = [
            RichHandler(console=console, show_path=False, show_level=False, show_time=False, markup=False)
        ]
        self._bar.start()

    def pass_start(self, pass_number: int, total_bytes: int) -> None:
        self._samples = 0
        self._task = self._bar.add_task(
            "",
            total=total_bytes or None,
            pass_number=pass_number,
            samples=0,
            speed="",
            metrics="",
        )

    def advance(self, samples: int, bytes_done: int) -> None:
        self._samples += samples
        if self._task is not None:
            self._bar.update(self._task, completed=bytes_done, samples=self._samples)

    def interval(self, event: Interval) -> None:
        if self._task is None:
            return
        name = "auc" if "auc" in event.metrics else "rmse"
        self._bar.update(
            self._task,
            speed=f"{event.samples_per_second:,.0f}/s",
            metrics=f"loss {event.loss:.4f}  {name} {event.metrics[name]:.4f}",
        )

    def pass_end(self, event: PassEnd) -> None:
        del event
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None

    def close(self) -> None:
        self._bar.stop()
        self._logger.handlers[:] = self._handlers
