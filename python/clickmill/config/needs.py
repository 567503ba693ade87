"""Files beside config.yaml that a configuration needs: models, readers, schemas of the user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.store.named_path import is_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.config.config import Config
    from clickmill.config.document import KeyPath


@dataclass(frozen=True, slots=True)
class NeededFile:
    """A file, and the key that names it."""

    path: Path
    key: KeyPath


def needed_files(config: Config) -> tuple[NeededFile, ...]:
    """Files of the phases that `mode` runs, as they are named: relative to where the command is typed."""
    return tuple(dict.fromkeys(_needed(config)))


def _needed(config: Config) -> Iterator[NeededFile]:
    for runner in config.runners():
        for phase in config.phases_of(runner):
            if phase.builtin is None:
                yield NeededFile(Path(phase.model), ("phase", config.phase.index(phase), "model"))
            dataset = config.dataset_named(phase.dataset_name)
            index = config.dataset.index(dataset)
            if dataset.data_converter:
                yield NeededFile(Path(dataset.data_converter), ("dataset", index, "data_converter"))
            key: KeyPath = ("dataset", index, "schema")
            schema = Path(config.place(key).file)  # what was read from a file of its own stands there
            if dataset.schema_ is not None and str(schema) != config.file and is_file(schema):
                yield NeededFile(schema, key)
