"""Writes the golden files of the submission folder anew: `python -m tests.unit.submit.golden.write`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from clickmill.submit.paddlecloud.api import prepare
from clickmill.submit.paddlecloud.folder import generate
from tests.unit.submit.jobs import KINDS, SECRETS, request, write_job


def golden_files() -> dict[str, str]:
    """Files that are written for the job of the current folder, by name; no secret of its own, no version."""
    job = prepare(request("config.install=clickmill[train]"), token="a-token")
    return {file.name: file.content for file in generate(job)}


def main() -> None:
    os.environ.update(SECRETS)
    here = Path(__file__).resolve().parent
    for kind, texts in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            write_job(Path(folder), *texts)
            for name, content in golden_files().items():
                (here / kind).mkdir(exist_ok=True)
                (here / kind / name).write_text(content, encoding="utf-8")
            os.chdir(here)


if __name__ == "__main__":
    main()
