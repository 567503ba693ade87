"""Which checkpoints stay."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from clickmill.store import durable
from clickmill.train.checkpoint import find_checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clickmill.config import KeepPolicy
    from clickmill.train.checkpoint import Manifest

    Found = tuple[Path, Manifest]


def prune(
    parent: Path,
    policy: KeepPolicy,
    is_ours: Callable[[Manifest], bool],
    *,
    metric: str,
    higher_is_better: bool,
) -> list[Path]:
    """Remove the checkpoints below `parent` that are ours and not kept by the policy; returns what went.

    What a kept checkpoint builds on is kept too. `metric` says which are the best.
    """
    checkpoints = [found for found in find_checkpoints(parent) if is_ours(found[1])]
    manifests = {path.name: manifest for path, manifest in checkpoints}
    needed: set[str] = set()
    for name in _kept(checkpoints, policy, metric, 1.0 if higher_is_better else -1.0):
        link: str | None = name
        while link is not None and link not in needed:
            needed.add(link)
            link = manifests[link].base if link in manifests else None
    removed = [path for path, _ in checkpoints if path.name not in needed]
    for path in removed:
        # Renamed first: what an interrupted removal leaves is no checkpoint, and is cleared by the next run.
        doomed = durable.partial_name(path)
        path.rename(doomed)
        shutil.rmtree(doomed)
    return removed


def _kept(checkpoints: list[Found], policy: KeepPolicy, metric: str, sign: float) -> list[str]:
    kept = [path.name for path, _ in checkpoints[-policy.last :]]
    if policy.best:
        measured = [
            (path, value) for path, each in checkpoints if (value := each.metrics.get(metric)) is not None
        ]
        measured.sort(key=lambda item: sign * item[1], reverse=True)
        kept += [path.name for path, _ in measured[: policy.best]]
    if policy.every_passes:
        kept += [
            path.name
            for path, manifest in checkpoints
            if manifest.is_pass_end and manifest.pass_number % policy.every_passes == 0
        ]
    return kept
