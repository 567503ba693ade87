"""A progress bar for bytes that come from a cluster, on stderr where that is a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from clickmill.cli.output import talk
from clickmill.launch.terminal import is_terminal

if TYPE_CHECKING:
    from types import TracebackType


class FetchBar:
    """Shows how much has come, how fast, and how long the rest takes; words go above it."""

    def __init__(self, *, is_shown: bool = True) -> None:
        self._is_shown = is_shown and is_terminal(sys.stderr)
        self._bar: Any = None
        self._task: Any = None
        self._total = 0

    def __enter__(self) -> FetchBar:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, words: str) -> None:
        """A line for the person."""
        if self._bar is not None:
            self._bar.console.print(words, markup=False, highlight=False)
        else:
            talk(words)

    def expect(self, num_bytes: int) -> None:
        self._total += num_bytes
        if not self._is_shown:
            return
        if self._bar is None:
            self._start()
        self._bar.update(self._task, total=self._total)

    def advance(self, num_bytes: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, advance=num_bytes)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._bar = Progress(
            BarColumn(30),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True, highlight=False),
            refresh_per_second=4,
        )
        self._task = self._bar.add_task("", total=self._total)
        self._bar.start()
