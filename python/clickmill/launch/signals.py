"""Signals that ask this process to end, while others run under its hand."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):  # noqa: N818 - it is no error
    """A signal asked us to end."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number

    def as_exit(self) -> BaseException:
        """What this process ends with: as after Ctrl-C, or with the code of another signal."""
        return KeyboardInterrupt() if self.number == signal.SIGINT else SystemExit(128 + self.number)


@contextlib.contextmanager
def signals_to(heard: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Give them to `heard` in the running loop, but for those that are ignored: they stay so."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    for number in _NUMBERS:
        if before[number] != signal.SIG_IGN:  # under nohup, or in the background of a script
            loop.add_signal_handler(number, heard, number)
    try:
        yield
    finally:
        for number in _NUMBERS:
            if loop.remove_signal_handler(number):
                signal.signal(number, before[number])
