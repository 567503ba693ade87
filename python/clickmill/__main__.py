"""The `clickmill` command, also as `python -m clickmill`.

Importing the commands takes a moment in which a user may change their mind, so it happens inside `main`.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point: Ctrl-C ends it with 130 and no traceback, from the first import on."""
    try:
        _require_streams()
        from clickmill.cli import main as start  # noqa: PLC0415 - see above

        start()
    except KeyboardInterrupt:
        sys.exit(130)


def _require_streams() -> None:
    """A closed stream is no stream: the next file that is opened would take its number, and its output."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for as long as we run
    if sys.stdout is None:
        sys.exit("error: stdout is closed\nhint: send it to /dev/null where nobody reads it")
    for stream in (sys.stdout, sys.stderr):
        # Logs hold every character; one that a terminal does not have must not end the command.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # they are text files


if __name__ == "__main__":
    main()
