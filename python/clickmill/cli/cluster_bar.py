"""One progress bar for all trainers of a local cluster, below the lines that they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from clickmill.cli.live import REFRESHES_PER_SECOND
from clickmill.launch.progress import TotalProgress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.progress import TaskID


class ClusterBar:
    """A bar for each pass, by bytes of the data, summed over trainers."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._total = TotalProgress()
        self._task: TaskID | None = None
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(24),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[samples]:,} samples"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._is_shown = False

    def line(self, text: str) -> None:
        """Write a line above the bar."""
        self._console.print(Text.from_ansi(text), soft_wrap=True)

    def progress(self, name: str, told: Mapping[str, Any]) -> None:
        """A trainer has done so much of its pass."""
        if self._total.add(name, told):
            self._new_pass()
        if self._task is not None:
            self._bar.update(
                self._task,
                completed=self._total.num_bytes,
                samples=self._total.samples,
                words=self._total.words,
            )

    def close(self) -> None:
        """Leave the bar where it stands."""
        if self._is_shown:
            self._bar.stop()
            self._is_shown = False

    def _new_pass(self) -> None:
        if not self._is_shown:
            self._bar.start()
            self._is_shown = True
        if self._task is not None:
            self._bar.stop_task(self._task)
        words = f"pass {self._total.pass_number + 1}/{self._total.passes}"
        total = self._total.total_bytes or None
        self._task = self._bar.add_task(words, total=total, samples=0, words="")
