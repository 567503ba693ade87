"""Why a process failed, in its own words, as an error of ours with the right exit code."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import TYPE_CHECKING, Any

from clickmill import errors
from clickmill.errors import RUN_ENDED, ClickmillError, ConfigError
from clickmill.store.durable import FULL, is_full

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_FINAL_CODES = frozenset({2, 3, 4})
"""Wrong arguments or configuration, unreadable samples, a damaged file."""
FINAL_KINDS = frozenset({"MissingExtra", "DivergedError", "RunFailedError"})
"""Errors of another exit code after which another try would end in the same way."""
_MEMBER = re.compile(r"\b(?:pserver|trainer|worker) \d+\b")
"""As the coordinator, too, names them."""
SPACE_HINT = "free some space and go on with `--resume`"


def exit_words(code: int) -> str:
    """`ended with exit code 3`, `was killed by SIGKILL`."""
    number = -code if code < 0 else code - 128
    if number in signal.valid_signals() and (code < 0 or code > 128):
        return f"was killed by {signal.Signals(number).name}"
    return f"ended with exit code {code}"


def is_final(code: int, words: Sequence[str]) -> bool:
    """Whether another try would end in the same way."""
    return code in _FINAL_CODES or (_last_told(words) or {}).get("kind") in FINAL_KINDS


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


def failure(
    name: str, code: int, words: Sequence[str], log_of: Callable[[str], Path | None]
) -> ClickmillError:
    """What a run that failed because of `name` raises; `words` are its last lines.

    Where it told an error of ours, that one with its kind, so that the run ends with the same exit code. What
    the coordinator tells all members is not blamed on the one that happened to end first. `log_of` gives the
    log of a member by its name.
    """
    told = _last_told(words)
    if told is None:
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        said = f": {last.removeprefix('error: ')}" if last else ""
        return ClickmillError(f"{name} {exit_words(code)}{said}", hint=log_hint(log_of(name)))
    message, own_hint = str(told["message"]), told.get("hint")
    named = _MEMBER.search(message)
    is_named_first = named is not None and named.start() == 0
    is_of_all = told.get("kind") == "RunFailedError" or message.startswith(RUN_ENDED)
    if named is not None and (is_of_all or is_named_first):
        log = log_of(named[0])
        place = None if log is None else f"the log of {named[0]} is `{log}`"
    elif is_of_all:
        log = log_of(name)
        place = None if log is None else f"the logs are in `{log.parent}`"
    else:
        place = log_hint(log_of(name))
    way_on = None if "--resume" in str(own_hint) or not _tells_full_disk(message) else SPACE_HINT
    prefix = "" if is_of_all or is_named_first else f"{name}: "
    hint = "; ".join(part for part in (own_hint, way_on, place) if part) or None
    return _kind(told.get("kind"))(prefix + message, hint=hint)


def system_failure(name: str, error: OSError, log: Path | None) -> ClickmillError:
    """What a run raises when the system refuses what `name` needs; the log is named where no file is."""
    place = f"`{error.filename}`: " if error.filename else ""
    way_on = SPACE_HINT if is_full(error) else None
    hint = "; ".join(part for part in (way_on, log_hint(log)) if part) or None
    return ClickmillError(f"{name}: {place}{error.strerror or error}", hint=hint)


def log_hint(log: Path | None) -> str | None:
    """Where to read more of the member that the message names."""
    return None if log is None else f"its log is `{log}`"


def _tells_full_disk(message: str) -> bool:
    return any(os.strerror(number) in message for number in FULL)


def _last_told(words: Sequence[str]) -> dict[str, Any] | None:
    return next((error for line in reversed(words) if (error := told_error(line))), None)


def _kind(name: object) -> type[ClickmillError]:
    if name == "UsageError":
        return ConfigError
    kind = getattr(errors, str(name), None)
    return kind if isinstance(kind, type) and issubclass(kind, ClickmillError) else ClickmillError
