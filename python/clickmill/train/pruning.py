"""Which checkpoints stay."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from clickmill.train.checkpoint import MANIFEST, find_checkpoints

if TYPE_CHECKING:
    from pathlib import Path

    from clickmill.config import KeepPolicy
    from clickmill.train.checkpoint import Manifest


def prune(parent: Path, policy: KeepPolicy) -> list[Path]:
    """Remove the checkpoints below `parent` that the policy does not keep; returns what went.

    What a kept checkpoint builds on is kept too.
    """
    checkpoints = list(find_checkpoints(parent))
    manifests = {path.name: manifest for path, manifest in checkpoints}
    needed: set[str] = set()
    for name in _kept(checkpoints, policy):
        link: str | None = name
        while link is not None and link not in needed:
            needed.add(link)
            link = manifests[link].base if link in manifests else None
    removed = [path for path, _ in checkpoints if path.name not in needed]
    for path in removed:
        # Without its manifest a folder is no checkpoint: an interrupted removal leaves nothing half valid.
        (path / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(path)
    return removed


def _kept(checkpoints: list[tuple[Path, Manifest]], policy: KeepPolicy) -> list[str]:
    kept = [path.name for path, _ in checkpoints[-policy.last :]]
    if policy.best:
        ranked = sorted(checkpoints, key=lambda item: item[1].metrics.get("auc", 0.0), reverse=True)
        kept += [path.name for path, _ in ranked[: policy.best]]
    if policy.every_passes:
        kept += [
            path.name
            for path, manifest in checkpoints
            if manifest.is_pass_end and manifest.pass_number % policy.every_passes == 0
        ]
    return kept
