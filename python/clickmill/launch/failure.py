"""Why a process failed, in its own words, as an error of ours with the right exit code."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

from clickmill import errors
from clickmill.errors import ClickmillError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FINAL_CODES = frozenset({2, 3, 4})
"""Wrong arguments or configuration, unreadable samples, a damaged file."""
_FINAL_KINDS = frozenset({"MissingExtra", "DivergedError", "RunFailedError"})


def exit_words(code: int) -> str:
    """`ended with exit code 3`, `was killed by SIGKILL`."""
    number = -code if code < 0 else code - 128
    if number in signal.valid_signals() and (code < 0 or code > 128):
        return f"was killed by {signal.Signals(number).name}"
    return f"ended with exit code {code}"


def is_final(code: int, words: Sequence[str]) -> bool:
    """Whether another try would end in the same way."""
    return code in _FINAL_CODES or (_last_told(words) or {}).get("kind") in _FINAL_KINDS


def is_lost(words: Sequence[str]) -> bool:
    """Whether it failed only because another process of the run had."""
    return (_last_told(words) or {}).get("kind") == "MemberLostError"


def told_error(line: str) -> dict[str, Any] | None:
    """The error that a command with `--json` tells on stderr; None for any other line."""
    if not line.startswith('{"error"'):
        return None
    try:
        body = json.loads(line)["error"]
    except (ValueError, KeyError):
        return None
    return body if isinstance(body, dict) and isinstance(body.get("message"), str) else None


def failure(name: str, code: int, words: Sequence[str], log: Path | None) -> ClickmillError:
    """What a run that failed because of `name` raises; `words` are its last lines.

    Where it told an error of ours, that one with its kind, so that the run ends with the same exit code.
    """
    place = f"its log is `{log}`" if log is not None else None
    told = _last_told(words)
    if told is not None:
        hint = "; ".join(part for part in (told.get("hint"), place) if part) or None
        return _kind(told.get("kind"))(f"{name}: {told['message']}", hint=hint)
    last = next((line.strip() for line in reversed(words) if line.strip()), "")
    said = f": {last.removeprefix('error: ')}" if last else ""
    return ClickmillError(f"{name} {exit_words(code)}{said}", hint=place)


def _last_told(words: Sequence[str]) -> dict[str, Any] | None:
    return next((error for line in reversed(words) if (error := told_error(line))), None)


def _kind(name: object) -> type[ClickmillError]:
    if name == "UsageError":
        return ConfigError
    kind = getattr(errors, str(name), None)
    return kind if isinstance(kind, type) and issubclass(kind, ClickmillError) else ClickmillError
