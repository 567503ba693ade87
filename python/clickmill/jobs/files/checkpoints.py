"""Checkpoints among the files of a job: which is the newest, and what belongs to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clickmill.errors import FormatError, NotFoundError
from clickmill.jobs.files.download import Unit
from clickmill.train.checkpoint import MANIFEST, open_checkpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clickmill.jobs.files.folder import FileEntry
    from clickmill.jobs.files.source import FileSource

_MAX_CHAIN = 10_000


@dataclass(frozen=True, slots=True)
class RemoteCheckpoint:
    """A checkpoint on the volume of a job."""

    units: tuple[Unit, ...]
    """The folders that it builds on, the full one first; its own last."""
    manifest: Mapping[str, Any]

    @property
    def words(self) -> str:
        """`checkpoints/1, after pass 2, step 4,000`."""
        # At the end of a pass the run is in the next one.
        done = self.manifest["pass_number"]
        stage = f"after pass {done}" if self.manifest.get("is_pass_end") else f"in pass {done + 1}"
        return f"`{self.units[-1].path}`, {stage}, step {self.manifest['step']:,}"


def newest_checkpoint(source: FileSource, *, is_pass: bool) -> RemoteCheckpoint:
    """The newest one; with `is_pass` the newest made at the end of a pass. NotFoundError for none."""
    files = source.listing()
    manifests = [entry for entry in files if entry.path.split("/")[-1] == MANIFEST]
    for entry in sorted(manifests, key=lambda each: each.modified_ns, reverse=True):
        manifest = _read(source, entry)
        if manifest.get("is_pass_end") or not is_pass:
            return RemoteCheckpoint(_chain(source, files, entry, manifest), manifest)
    what = "no pass is over" if manifests else "there is no checkpoint"
    raise NotFoundError(
        f"{what} yet in the output of the job",
        hint="`save_checkpoint_interval` and `save_step_interval` of the runner say when they are made",
    )


def _chain(
    source: FileSource, files: Sequence[FileEntry], entry: FileEntry, manifest: Mapping[str, Any]
) -> tuple[Unit, ...]:
    by_path = {each.path: each for each in files}
    folder = entry.path.removesuffix(MANIFEST).rstrip("/")
    chain = [_unit(files, folder)]
    while manifest.get("base") is not None:
        folder = "/".join([*folder.split("/")[:-1], str(manifest["base"])])
        base = by_path.get(f"{folder}/{MANIFEST}")
        if base is None or len(chain) > _MAX_CHAIN:
            raise FormatError(f"checkpoint `{chain[0].path}` builds on `{folder}`, which is not there")
        manifest = _read(source, base)
        chain.insert(0, _unit(files, folder))
    return tuple(chain)


def _unit(files: Sequence[FileEntry], folder: str) -> Unit:
    return Unit(folder, tuple(entry for entry in files if entry.path.startswith(f"{folder}/")))


def _read(source: FileSource, entry: FileEntry) -> dict[str, Any]:
    try:
        found = json.loads(source.content(entry))
        found["step"], found["pass_number"]
    except (ValueError, TypeError, KeyError) as error:
        raise FormatError(f"`{entry.path}` in the output of the job is damaged: {error}") from error
    return dict(found)


def is_here(source: FileSource, unit: Unit, target: Path) -> bool:
    """Whether the very same checkpoint is at its place already, with all its files as they should be."""
    place = target / unit.path
    (entry,) = (each for each in unit.files if each.path == f"{unit.path}/{MANIFEST}")
    try:
        if (place / MANIFEST).read_bytes() != source.content(entry):
            return False
        open_checkpoint(place)
    except (OSError, FormatError):
        return False
    return True
