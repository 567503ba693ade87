"""What a run came to, from what its trainers left behind when they ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clickmill.jobs.pods import Pod

Summary = dict[str, Any]


def run_summary(pods: Sequence[Pod]) -> Summary | None:
    """Passes, samples and metrics of a run that has ended well; None where no pod tells."""
    for pod in pods:
        if pod.role == "pserver" or pod.ending is None or pod.ending.code != 0:
            continue
        try:
            told = json.loads(pod.ending.message)
        except ValueError:
            continue
        if isinstance(told, dict) and "samples" in told:
            return told
    return None
