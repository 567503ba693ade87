"""PaddleCloud's own client, which job.sh calls."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError
from clickmill.launch.process import Process
from clickmill.launch.role import RoleCommand
from clickmill.launch.signals import Stopped, signals_to

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from pathlib import Path

    from clickmill.config.backend.known_secrets import KnownSecrets

logger = logging.getLogger(__name__)

CLIENT = "paddlecloud"
_GRACE_S = "5"
"""Between being asked to end and being killed."""


def find_client() -> str | None:
    """Its path; None where it is not installed."""
    return shutil.which(CLIENT)


def again(folder: Path) -> str:
    """The command that submits a folder, also after it was changed."""
    return f"cd {shlex.quote(str(folder))} && sh job.sh"


def run_job_script(folder: Path, secrets: KnownSecrets) -> dict[str, Any]:
    """Submit a folder; the JSON of the platform: `groupName`, `jobId`, `userId`.

    Its other words are logged, without secrets. Raises ClickmillError where the client fails.
    """
    lines: list[bytes] = []
    try:
        code = asyncio.run(_run(_command(folder), lines.append))
    except Stopped as stopped:
        raise stopped.as_exit() from None
    words, reply = split_reply(secrets.masked_bytes(b"\n".join(lines)).decode(errors="replace"))
    for line in words.splitlines():
        logger.info("%s", line)
    if code != 0:
        raise ClickmillError(
            f"the client `{CLIENT}` ended with {code}; the job has not been submitted",
            hint=f"its words are above; when mended, submit the folder again: `{again(folder)}`",
        )
    return reply


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


def split_reply(text: str) -> tuple[str, dict[str, Any]]:
    """Words of the client, and the last JSON object among them; an empty one where there is none.

    Words may hold an object too, of the settings for one.
    """
    decoder = json.JSONDecoder()
    found: tuple[int, int, dict[str, Any]] = (len(text), len(text), {})
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            found = (start, end, value)
        start = text.find("{", end)
    start, end, reply = found
    return text[:start] + text[end:].lstrip(), reply
