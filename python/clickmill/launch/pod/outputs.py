"""Where a run in a pod writes: on the volume for outputs, for the folder of the pod goes with the pod."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.store.remote.url import is_url

if TYPE_CHECKING:
    from clickmill.config import RunnerConfig

WRITTEN = (
    "save_checkpoint_path",
    "save_step_path",
    "save_inference_path",
    "tensorboard_path",
    "runner_result_dump_path",
)
"""Keys of a runner that name what it writes, beside `output_path`."""


def output_overrides(runner: RunnerConfig, place: str, output: Path) -> list[str]:
    """Overrides that put everything that the runner writes below `output`; `place` is its path in the file.

    Paths that lie on a volume of their own stay as they are, and so do URLs: what is there takes copies of
    what lies below `output`.
    """
    overrides = [f"{place}.output_path={json.dumps(str(output))}"]
    here = Path.cwd()
    for key in WRITTEN:
        text = getattr(runner, key)
        if not text or is_url(text):
            continue
        path = Path(os.path.normpath(here / text))
        if path.is_relative_to(here) and not _is_mounted(path, here):
            overrides.append(f"{place}.{key}={json.dumps(str(output / path.relative_to(here)))}")
    return overrides


def _is_mounted(path: Path, here: Path) -> bool:
    """Whether a volume lies between the folder of the pod and `path`."""
    return any(
        each.is_mount() for each in (path, *path.parents) if each.is_relative_to(here) and each != here
    )
