"""How log lines look on stderr."""

from __future__ import annotations

import logging
import os
import sys

DATES_VARIABLE = "CLICKMILL_LOG_DATES"
"""Set: lines begin with the time and the level, as in the logs of pods."""
_logger = logging.getLogger("clickmill")


class _Words(logging.Formatter):
    """`warning: ...` for what deserves it, the bare line for the rest."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return f"{record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text


def start_logging() -> None:
    """Let the lines of the package go to stderr."""
    is_dated = os.environ.get(DATES_VARIABLE, "0") not in {"", "0"}
    dated = logging.Formatter("%(asctime)s - %(levelname)s - %(message)s")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(dated if is_dated else _Words("%(message)s"))
    _logger.handlers[:] = [handler]
    _logger.propagate = False


def date_lines() -> None:
    """From now on with dates, in this process and in those that it starts, unless it was told otherwise."""
    os.environ.setdefault(DATES_VARIABLE, "1")
    start_logging()
