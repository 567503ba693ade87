"""What a job writes beside the folder of its run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config.document import KeyPath
    from clickmill.submit.request import Request

WRITTEN = ("save_checkpoint_path", "save_step_path", "tensorboard_path")
"""Keys of a runner that trains; models for inference and scores are not made by jobs."""


@dataclass(frozen=True, slots=True)
class Output:
    """A path or URL, and the key that names it."""

    text: str
    key: KeyPath


def outputs_of(request: Request) -> Iterator[Output]:
    """Those of the runner that is submitted."""
    runner = request.runner
    for key in WRITTEN:
        if text := getattr(runner, key):
            yield Output(text, ("runner", request.config.runner.index(runner), key))
