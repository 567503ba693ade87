"""Exit codes, and how an error is told."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from typing import Any

from clickmill.cli.output import bytes_text
from clickmill.errors import (
    ClickmillError,
    ConfigError,
    DataError,
    DeadlineError,
    FormatError,
    GaveUpError,
    visible,
)
from clickmill.launch.pod.error_file import leave_error

OK = 0
FAILURE = 1
USAGE = 2
DATA = 3
DAMAGED = 4
GAVE_UP = 5
DEADLINE = 124
INTERRUPTED = 130
TERMINATED = 143

MEANINGS = {
    OK: "done",
    FAILURE: "failed while running",
    USAGE: "wrong arguments or configuration",
    DATA: "samples that cannot be read",
    DAMAGED: "a damaged file, or one of another version",
    GAVE_UP: "failed for good, as a pod of a job",
    DEADLINE: "not done in the time that was given",
    INTERRUPTED: "interrupted",
    TERMINATED: "terminated",
}


MEMORY_HINT = "make the model or the batches smaller; `clickmill doctor` tells how much memory there is"


def exit_code(error: ClickmillError) -> int:
    """The exit code that goes with an error."""
    codes: dict[type[ClickmillError], int] = {
        ConfigError: USAGE,
        DataError: DATA,
        FormatError: DAMAGED,
        GaveUpError: GAVE_UP,
        DeadlineError: DEADLINE,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), FAILURE)


def memory_words(error: Exception) -> str | None:
    """What to say of memory that could not be had; None for an error of another kind."""
    asked = re.search(r"allocate memory.*?allocate (\d+) bytes", str(error))
    if asked:  # torch has no type of its own for it
        return f"not enough memory: {bytes_text(int(asked[1]))} could not be had"
    return f"not enough memory: {error}" if isinstance(error, MemoryError) else None


def system_failure(error: OSError) -> ClickmillError:
    """What the system refused, where nobody nearer to it knew more."""
    if error.errno == errno.ENOENT and not error.filename and not _has_folder():
        message = "the folder in which this command was typed is not there any more"
        return ClickmillError(message, hint="`cd` to one that is there")
    place = f"`{error.filename}`: " if error.filename else ""
    return ClickmillError(f"{place}{error.strerror or error}")


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - Path.cwd() may remember it
    except OSError:
        return False
    return True


def tell(error: ClickmillError, *, as_json: bool) -> None:
    """`error: ...` and `hint: ...` on stderr, or one JSON object there; for a launcher, also in a file."""
    body: dict[str, Any] = {"kind": type(error).__name__, "message": str(error), "hint": error.hint}
    if isinstance(error, ConfigError):
        body["problems"] = [problem.to_dict() for problem in error.problems]
    told = _json_error(body, exit_code(error))
    leave_error(told)
    if as_json:
        _write(told)
    else:
        lines = [f"error: {error}", *([f"hint: {error.hint}"] if error.hint else [])]
        _write(*(visible(line, keep="\n\t") for line in lines))


def tell_usage(message: str, command: str) -> None:
    """Wrong arguments, as JSON; for people the command line has words of its own."""
    hint = f"see `{command} --help`"
    _write(_json_error({"kind": "UsageError", "message": message, "hint": hint}, USAGE))


def _json_error(body: dict[str, Any], code: int) -> str:
    text = json.dumps({"error": body, "exit_code": code}, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


def _write(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr)  # noqa: T201
