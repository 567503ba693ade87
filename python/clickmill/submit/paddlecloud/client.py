"""PaddleCloud's own client, which job.sh calls."""

from __future__ import annotations

import json
import logging
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError

if TYPE_CHECKING:
    from pathlib import Path

    from clickmill.config.backend.known_secrets import KnownSecrets

logger = logging.getLogger(__name__)

CLIENT = "paddlecloud"


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
    done = subprocess.run(
        ["sh", "job.sh"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    words, reply = split_reply(secrets.masked_bytes(done.stdout).decode(errors="replace"))
    for line in words.splitlines():
        logger.info("%s", line)
    if done.returncode != 0:
        raise ClickmillError(
            f"the client `{CLIENT}` ended with {done.returncode}; the job has not been submitted",
            hint=f"its words are above; when mended, submit the folder again: `{again(folder)}`",
        )
    return reply


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
