"""PaddleCloud's own client, which job.sh calls."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import shlex
import shutil
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError
from clickmill.launch.failure import exit_words
from clickmill.launch.lines import MAX_LINE_BYTES
from clickmill.launch.process import Process
from clickmill.launch.role import RoleCommand
from clickmill.launch.signals import Stopped, signals_to

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from clickmill.config.backend.known_secrets import KnownSecrets

logger = logging.getLogger(__name__)

CLIENT = "paddlecloud"
_GRACE_S = "5"
"""Between being asked to end and being killed."""
_MAX_LINES = 10_000
"""So many of the last lines are looked through for the reply."""
_MAX_SHOWN = 10_000
"""Characters of a line that is too long."""
_SIGNALS = 128
"""Codes above are those of a signal."""
_JOB = re.compile(r""""job_?id"\s*:\s*"?((?<=")[^"\n]+(?=")|[1-9]\d*)""", re.IGNORECASE)
_LOOK = "look for it on the platform before you submit the folder again"


def find_client() -> str | None:
    """Its path; None where it is not installed."""
    return shutil.which(CLIENT)


def again(folder: Path) -> str:
    """The command that submits a folder, also after it was changed."""
    return f"cd {shlex.quote(str(folder))} && sh job.sh"


class Words:
    """What the client says, without secrets; logged as it comes, for it may be ended with a job under way."""

    def __init__(self, secrets: KnownSecrets) -> None:
        self._mask = secrets.mask()
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._is_cut = False

    def hear(self, line: bytes) -> None:
        """A whole line, or a part of one that is too long: of that only the first part is told, and of it not
        the end, for a secret that is cut would not be found.
        """
        was_cut, self._is_cut = self._is_cut, len(line) > MAX_LINE_BYTES
        if was_cut:
            return
        text = self._mask(line).decode(errors="replace")
        if self._is_cut:
            text = f"{text[:_MAX_SHOWN]} ... (the line is too long to be shown)"
        for each in text.splitlines():
            logger.info("%s", each)
        self._lines.append(text)

    @property
    def reply(self) -> dict[str, Any]:
        return find_reply("\n".join(self._lines))

    @property
    def job(self) -> str | None:
        """Also from a reply that has no end yet."""
        return named_job("\n".join(self._lines))


def run_job_script(folder: Path, secrets: KnownSecrets) -> dict[str, Any]:
    """Submit a folder; the JSON of the platform: `groupName`, `jobId`, `userId`.

    Raises ClickmillError where the client fails, and what a signal ends this process with.
    """
    words = Words(secrets)
    try:
        code = asyncio.run(_run(_command(folder), words.hear))
    except Stopped as stopped:
        logger.warning("%s: %s; %s", stopped, _ended_early(words.job), _LOOK)
        raise stopped.as_exit() from None
    if code == 0:
        return words.reply
    if words.job is None and (code < 0 or code > _SIGNALS):
        raise ClickmillError(
            f"{_ended_early(None)} (it {exit_words(code)})", hint=f"{_LOOK}: `{again(folder)}`"
        )
    if words.job is not None:
        raise ClickmillError(
            f"the client `{CLIENT}` ended with {code}, but has named the job `{words.job}`, which may have "
            "been submitted",
            hint=f"its words are above; {_LOOK}: `{again(folder)}`",
        )
    raise ClickmillError(
        f"the client `{CLIENT}` ended with {code}; the job has not been submitted",
        hint=f"its words are above; when mended, submit the folder again: `{again(folder)}`",
    )


def _ended_early(job: str | None) -> str:
    if job is None:
        return (
            f"the client `{CLIENT}` was ended before it named a job; one may have been submitted all the same"
        )
    return f"the client `{CLIENT}` was ended; the job `{job}`, which it has named, may have been submitted"


def _command(folder: Path) -> RoleCommand:
    """job.sh, behind a tether: the script starts the client, which starts others, and the kernel would end
    none of these with us. They have the keys among their arguments, and would still submit.
    """
    tether = (sys.executable, "-P", "-m", "clickmill.launch.tether", "--silence", "0", "--grace", _GRACE_S)
    script = ("sh", "-c", 'exec sh "$0" 2>&1', str(folder / "job.sh"))
    return RoleCommand(f"the client `{CLIENT}`", (*tether, "--", *script), is_tethered=True)


async def _run(command: RoleCommand, hear: Callable[[bytes], None]) -> int:
    """The exit code. Raises Stopped when a signal has asked us to end, and all of the client has ended."""
    asked: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()

    def heard(number: signal.Signals) -> None:
        if not asked.done():
            asked.set_result(number)

    with signals_to(heard):
        process = await Process.start(command, hear, hear)
        life = asyncio.create_task(process.wait())
        either: set[asyncio.Future[Any]] = {life, asked}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            process.ask_to_end()
            await life
            raise Stopped(asked.result())
        return await life


def find_reply(text: str) -> dict[str, Any]:
    """The JSON object among the words of the client that names the job; else the last, or an empty one.

    Words may hold others, of the settings for one.
    """
    found = list(_objects(text))
    named = [each for each in found if named_job(json.dumps(each)) is not None]
    return (named or found or [{}])[-1]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
            yield value
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)


def named_job(text: str) -> str | None:
    """The job that JSON names last, be it whole or not; None where it names none."""
    found = _JOB.findall(text)
    return found[-1] if found else None
