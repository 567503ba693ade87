"""Why a role failed, in a sentence, where Kubernetes keeps it: `/dev/termination-log`.

`kubectl describe pod` and `clickmill job status` show it when the container is gone.
"""

from __future__ import annotations

import contextlib
import logging
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError
from clickmill.launch.failure import exit_words
from clickmill.store.plain_json import plain_json
from clickmill.train.journal import read_journal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

logger = logging.getLogger(__name__)

VARIABLE = "CLICKMILL_TERMINATION_LOG"
_FILE = "/dev/termination-log"
_MAX_BYTES = 4096
"""Kubernetes cuts what is longer."""
_CGROUP = Path("/sys/fs/cgroup")
_COUNTERS = ("memory.events", "memory/memory.oom_control")
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
_KILLED = 128 + signal.SIGKILL


def write_last_words(words: str, environ: Mapping[str, str]) -> None:
    """Leave them for Kubernetes; nothing where this is no container."""
    path = Path(environ.get(VARIABLE) or _FILE)
    if str(path) == _FILE and not path.exists():
        return
    try:
        path.write_bytes(words.encode()[:_MAX_BYTES].decode(errors="ignore").encode())
    except OSError as error:
        logger.warning("cannot write `%s`: %s", path, error.strerror or error)


def error_words(error: ClickmillError) -> str:
    """An error of the launcher itself."""
    return f"error: {error}\nhint: {error.hint}" if error.hint else f"error: {error}"


def last_words(
    title: str,
    code: int,
    lines: Iterable[str],
    *,
    told: dict[str, Any] | None = None,
    cgroup: Path = _CGROUP,
) -> str:
    """Of a role that ended with `code`; `told` is the error that it has left, `lines` its last on stderr."""
    if code == _KILLED and _num_oom_kills(cgroup):
        return f"error: {title} ran out of memory and was killed{_limit_words(cgroup)}"
    lines = list(lines)
    said = _words(told) or _error(lines)
    if said:
        return f"error: {title}: {said}"
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    is_raised = re.match(r"[A-Za-z_.]+(Error|Exception|Interrupt|Exit)\b", last)
    return f"error: {title} {exit_words(code)}{f': {last}' if is_raised else ''}"


def summary_words(run: Path) -> str:
    """Of a run that has ended well: a line of JSON, by its journal; empty where that has no pass."""
    found: dict[str, Any] = {}
    samples = 0
    with contextlib.suppress(ClickmillError, OSError):
        for event in read_journal(run):
            if event["event"] == "pass_end":
                found = event
                samples += event["samples"]
    if not found:
        return ""
    metrics = found["validation"] or found["train"]
    return plain_json(
        {"passes": found["pass_number"] + 1, "batches": found["step"], "samples": samples, **metrics}
    )


def _words(told: dict[str, Any] | None) -> str | None:
    if told is None:
        return None
    return f"{told['message']}\nhint: {told['hint']}" if told.get("hint") else str(told["message"])


def _error(lines: Sequence[str]) -> str | None:
    """The last `error: ...` with its further lines and its hint."""
    starts = [place for place, line in enumerate(lines) if line.startswith("error: ")]
    if not starts:
        return None
    found = [lines[starts[-1]].removeprefix("error: ")]
    for line in lines[starts[-1] + 1 :]:
        if not line.startswith((" ", "hint: ")):
            break
        found.append(line)
    return "\n".join(found)


def _num_oom_kills(cgroup: Path) -> int:
    """How often the kernel has killed a process of this container for want of memory."""
    for name in _COUNTERS:
        with contextlib.suppress(OSError):
            found = re.search(r"^oom_kill (\d+)$", (cgroup / name).read_text(), re.MULTILINE)
            if found:
                return int(found[1])
    return 0


def _limit_words(cgroup: Path) -> str:
    for name in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            return f"; its limit is {int((cgroup / name).read_text()) / 2**20:,.0f} MiB"
    return ""
