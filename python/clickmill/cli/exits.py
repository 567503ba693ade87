"""Exit codes, and how an error is told."""

from __future__ import annotations

import json
import sys
from typing import Any

from clickmill.errors import ClickmillError, ConfigError, DataError, FormatError

OK = 0
FAILURE = 1
USAGE = 2
DATA = 3
DAMAGED = 4
INTERRUPTED = 130
TERMINATED = 143

MEANINGS = {
    OK: "done",
    FAILURE: "failed while running",
    USAGE: "wrong arguments or configuration",
    DATA: "samples that cannot be read",
    DAMAGED: "a damaged file, or one of another version",
    INTERRUPTED: "interrupted",
    TERMINATED: "terminated",
}


def exit_code(error: ClickmillError) -> int:
    """The exit code that goes with an error."""
    codes: dict[type[ClickmillError], int] = {ConfigError: USAGE, DataError: DATA, FormatError: DAMAGED}
    return next((code for kind, code in codes.items() if isinstance(error, kind)), FAILURE)


def tell(error: ClickmillError, *, as_json: bool) -> None:
    """`error: ...` and `hint: ...` on stderr, or one JSON object there."""
    hint = getattr(error, "hint", None)
    if as_json:
        body: dict[str, Any] = {"kind": type(error).__name__, "message": str(error), "hint": hint}
        if isinstance(error, ConfigError):
            body["problems"] = [problem.to_dict() for problem in error.problems]
        lines = [json.dumps({"error": body, "exit_code": exit_code(error)}, ensure_ascii=False)]
    else:
        lines = [f"error: {error}", *([f"hint: {hint}"] if hint else [])]
    print(*lines, sep="\n", file=sys.stderr)  # noqa: T201
