"""Checkpoints: everything that a run needs to go on as if it had never stopped.

    <folder>/
      checkpoint.json         manifest: what this is, and length and digest of every other file
      schema.json             what a sample means
      dense.safetensors       parameters and buffers of the dense net
      optimizer.safetensors   state of the dense optimizer
      trainer.json            reader position, counters, metrics, schedules
      settings.json           configuration of the run, for a resume to compare with its own
      tables/<name>.rows      rows of a table: full, or what changed since the base checkpoint
      model.py                the user's model, where it is not a built-in

The folder takes its name in one step when all of it is durable. Reading checks every file against the
manifest before anything is used.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickmill.errors import DataError, FormatError
from clickmill.store import durable
from clickmill.store.plain_json import plain_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

MANIFEST = "checkpoint.json"
VERSION = 1
OPTIMIZER_FILE = "optimizer.safetensors"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint is, readable without torch."""

    version: int
    run: str
    """Id of the run that wrote it."""
    pass_number: int
    """Pass that the run is in, counted from 0."""
    batch: int
    """Batches of that pass that are in the checkpoint."""
    step: int
    """Updates since the start of the run."""
    is_pass_end: bool
    model: str
    hyper: dict[str, Any]
    tables: list[str]
    base: str | None
    """Name of the checkpoint beside this one that the tables are a difference to."""
    metrics: dict[str, float | None]
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Length and digest by name; of a table's file also the id that a difference to it names."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk whose files have been checked."""

    folder: Path
    manifest: Manifest

    def read_json(self, name: str) -> Any:
        """Content of one of the JSON files."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def table_files(self, table: str) -> list[Path]:
        """Files of a table, the full one first, then the differences in order."""
        return [checkpoint.folder / "tables" / f"{table}.rows" for checkpoint in self.chain()]

    def chain(self) -> list[Checkpoint]:
        """This checkpoint and those it builds on, the full one first."""
        chain = [self]
        for folder in reversed(self.bases()):
            try:
                chain.insert(0, open_checkpoint(folder))
            except FormatError as error:
                raise FormatError(str(error), hint=before_hint(self.folder)) from error
        return chain

    def bases(self) -> list[Path]:
        """Folders of what it builds on, the full one first; FormatError where one is not there."""
        folders: list[Path] = []
        folder, manifest = self.folder, self.manifest
        while manifest.base is not None:
            base = folder.parent / manifest.base
            if not (base / MANIFEST).is_file():
                raise FormatError(
                    f"checkpoint `{folder}` holds what has changed since `{base}`, which is not there",
                    hint=f"bring that back, or {before_hint(self.folder)}",
                )
            folders.insert(0, base)
            folder, manifest = base, read_manifest(base)
        return folders


def read_optimizer(checkpoint: Checkpoint) -> tuple[int, list[Any]]:
    """Steps of a checkpoint's dense optimizer, and the arrays of its state in their order."""
    from safetensors import safe_open  # noqa: PLC0415 - only where dense parameters are read

    with safe_open(checkpoint.folder / OPTIMIZER_FILE, framework="numpy") as file:
        arrays = [file.get_tensor(name) for name in sorted(file.keys())]
        return int(file.metadata()["step"]), arrays


def write_checkpoint(
    folder: Path,
    manifest: Manifest,
    *,
    texts: Mapping[str, str],
    writers: Mapping[str, Callable[[Path], Mapping[str, str]]],
) -> Checkpoint:
    """Write a checkpoint so that `folder` is there whole or not at all.

    `texts` are small files by name; `writers` write larger ones to the path that they are given and return
    what else the manifest shall say of them.
    """
    with durable.new_folder(folder) as partial:
        (partial / "tables").mkdir()
        for name, text in texts.items():
            (partial / name).write_text(text, encoding="utf-8")
        facts = {name: dict(write(partial / name)) for name, write in writers.items()}
        files = {
            name: {"bytes": path.stat().st_size, "sha256": _digest(path), **facts.get(name, {})}
            for path in sorted(partial.rglob("*"))
            if path.is_file() and (name := str(path.relative_to(partial)))
        }
        manifest = Manifest(**{**manifest.__dict__, "files": files})
        (partial / MANIFEST).write_text(plain_json(manifest.__dict__, indent=1), encoding="utf-8")
    return Checkpoint(folder, manifest)


def open_checkpoint(folder: Path) -> Checkpoint:
    """Read the manifest and check every file against it."""
    manifest = read_manifest(folder)
    for name, expected in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise FormatError(f"checkpoint `{folder}` lacks its file `{name}`", hint=_HINT)
        found = path.stat().st_size
        if found != expected["bytes"]:
            raise FormatError(f"{path} has {found} bytes, the manifest says {expected['bytes']}", hint=_HINT)
        if _digest(path) != expected["sha256"]:
            raise FormatError(f"{path} is damaged: its digest is not the manifest's", hint=_HINT)
    return Checkpoint(folder, manifest)


def read_manifest(folder: Path) -> Manifest:
    """The manifest alone, without a look at the other files."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise DataError(f"no checkpoint at `{folder}`", hint="give the folder that holds `checkpoint.json`")
    if not path.is_file():
        raise DataError(f"`{folder}` is not a checkpoint: it has no `{MANIFEST}`")
    return parse_manifest(path.read_bytes(), str(path))


def parse_manifest(text: bytes, name: str) -> Manifest:
    """The manifest of a text; `name` is what people know it by."""
    try:
        content = json.loads(text)
        version = content["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{name} is damaged: {error}", hint=_HINT) from error
    if version != VERSION:
        raise FormatError(f"{name}: version {version}, this build reads version {VERSION}")
    try:
        return Manifest(**content)
    except TypeError as error:
        raise FormatError(f"{name} is damaged: {error}", hint=_HINT) from error


def find_checkpoints(parent: Path) -> Iterator[tuple[Path, Manifest]]:
    """All checkpoints directly below `parent`, oldest step first."""
    found = []
    if parent.is_dir():
        for path in parent.iterdir():
            if not path.name.startswith(".") and (path / MANIFEST).is_file():
                try:
                    manifest = read_manifest(path)
                except FormatError as error:
                    raise FormatError(str(error), hint=before_hint(path)) from error
                found.append((path, manifest))
    yield from sorted(found, key=lambda item: (item[1].step, item[1].is_pass_end, item[0].name))


def before_hint(folder: Path) -> str:
    """What to do about a checkpoint of a run that cannot be used."""
    return f"remove `{folder}` to resume from the one before it"


_HINT = "take an older checkpoint, or train again from one"


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
