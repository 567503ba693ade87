"""PaddleCloud's own client, which job.sh calls."""

from __future__ import annotations

import json
import logging
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from clickmill.errors import ClickmillError
from clickmill.submit.redaction import masked

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

logger = logging.getLogger(__name__)

CLIENT = "paddlecloud"


def find_client() -> str | None:
    """Its path; None where it is not installed."""
    return shutil.which(CLIENT)


def again(folder: Path) -> str:
    """The command that submits a folder, also after it was changed."""
    return f"cd {shlex.quote(str(folder))} && sh job.sh"


def run_job_script(folder: Path, secrets: Iterable[str]) -> dict[str, Any]:
    """Submit a folder; the JSON of the platform: `groupName`, `jobId`, `userId`.

    Its other words are logged, without secrets. Raises ClickmillError where the client fails.
    """
    done = subprocess.run(
        ["sh", "job.sh"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        check=False,
    )
    text = masked(done.stdout, secrets)
    words, reply = split_reply(text)
    for line in words.splitlines():
        logger.info("%s", line)
    if done.returncode != 0:
        raise ClickmillError(
            f"the client `{CLIENT}` ended with {done.returncode}; the job has not been submitted",
            hint=f"its words are above; when mended, submit the folder again: `{again(folder)}`",
        )
    return reply


def split_reply(text: str) -> tuple[str, dict[str, Any]]:
    """Words of the client, and the JSON object that ends them; an empty one where there is none."""
    decoder = json.JSONDecoder()
    for start in (index for index, letter in enumerate(text) if letter == "{"):
        try:
            value, end = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if isinstance(value, dict):
            return text[:start] + text[end:].lstrip(), value
    return text, {}
