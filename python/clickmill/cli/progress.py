"""A progress bar on stderr, where that is a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clickmill.launch.terminal import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clickmill.launch.screen import Display
    from clickmill.train.observer import Observer


@contextmanager
def row_progress(
    words: str, *, total: int, is_shown: bool = True
) -> Iterator[Callable[[int, int], None] | None]:
    """Gives a function of (rows done, rows in all); None where nobody would see the bar."""
    if not is_shown or not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=total)

        def update(done: int, in_all: int) -> None:
            bar.update(task, completed=done, total=in_all)

        yield update


def training_observers(*, is_shown: bool) -> list[Observer]:
    """The live bar of a training run, where somebody would see it; lines for the process that shows it."""
    from clickmill.launch.role import PROGRESS_VARIABLE

    if os.environ.get(PROGRESS_VARIABLE):
        from clickmill.launch.progress import ToldProgress

        return [ToldProgress()]
    if not is_shown or not is_terminal(sys.stderr):
        return []
    from clickmill.cli.live import LiveProgress

    return [LiveProgress()]


def cluster_display(*, is_shown: bool) -> Display | None:
    """One bar for all trainers of a cluster, where somebody would see it."""
    if not is_shown or not is_terminal(sys.stderr):
        return None
    from clickmill.cli.cluster_bar import ClusterBar

    return ClusterBar()
