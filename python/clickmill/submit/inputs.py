"""What a job reads: samples, and checkpoints that it begins with."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.config.workspace import workspace_folder
from clickmill.errors import ConfigError
from clickmill.store.remote.url import is_url
from clickmill.submit.package import config_name, matching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import PurePath

    from clickmill.config import Config, DatasetConfig
    from clickmill.config.document import KeyPath
    from clickmill.submit.request import Request

FOLDERS = {
    "train_data": "train_data_path",
    "test_data": "test_data_path",
    "thirdparty": "thirdparty_path",
    "afs": "afs_remote_mount_point",
}
"""Folders of a node, and the key that says where on the file system of the job they come from."""


@dataclass(frozen=True, slots=True)
class Input:
    """A path, pattern or URL, and the key that names it."""

    text: str
    key: KeyPath


def inputs_of(request: Request) -> Iterator[Input]:
    """Those of the runner that is submitted: of the data sets of its phases, and its own."""
    config, runner = request.config, request.runner
    names = [phase.dataset_name for phase in config.phases_of(runner)]
    names += [runner.evaluate_dataset_name] if runner.evaluate_dataset_name else []
    for name in dict.fromkeys(names):
        dataset = config.dataset_named(name)
        place: KeyPath = ("dataset", config.dataset.index(dataset))
        for key, texts in data_paths(dataset):
            path = (*place, *key.split("."))
            for index, text in enumerate(texts):
                yield Input(text, (*path, index) if len(texts) > 1 else path)
    for key in ("init_model_path", "init_pretraining_model_path"):
        if text := getattr(runner, key):
            yield Input(text, ("runner", config.runner.index(runner), key))


def data_paths(dataset: DatasetConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a data set reads, by key."""
    yield "data_path", dataset.data_path
    if dataset.validation is not None and dataset.validation.data_path:
        yield "validation.data_path", dataset.validation.data_path


def on_nodes(config: Config, text: str) -> Path:
    """A path as nodes see it, relative to their working folder, in which all files of the job lie."""
    path, here = Path(os.path.normpath(text)), Path(workspace_folder(config.file, config.workspace))
    return path.relative_to(here) if path.is_relative_to(here) else path


def not_on_nodes(request: Request, is_there: Callable[[Path], bool]) -> Iterator[tuple[Path, KeyPath]]:
    """What nodes would read, and its key, where it is no URL, no file of the job, and not there either."""
    for each in inputs_of(request):
        path = on_nodes(request.config, each.text)
        if not is_url(each.text) and not is_file_of_job(request, path) and not is_there(path):
            yield path, each.key


def is_file_of_job(request: Request, path: PurePath) -> bool:
    """Whether a path or pattern, relative to the working folder of nodes, names something that travels there.

    The working folder itself has all that travels.
    """
    if path.is_absolute() or len(path.parts) > 1:
        return False
    return any(fnmatchcase(file, path.name or "*") for file in _files(request))


def _files(request: Request) -> Iterator[str]:
    """Names of what travels, but for code and schemas."""
    if name := config_name(request.config):
        yield name
    for pattern in request.backend.submit.files:
        with contextlib.suppress(ConfigError):  # told where files are collected
            yield from (match.name for match in matching(pattern))
