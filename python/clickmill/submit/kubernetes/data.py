"""Where pods find what the job reads: on volumes, among its files, or on the file system of the job."""

from __future__ import annotations

import json
import posixpath
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from clickmill.config.backend.pod_values import OUTPUT, SCRATCH, WORKING_FOLDER
from clickmill.store.remote.url import FS_NAME, has_magic, is_url, names_no_host
from clickmill.submit.inputs import FOLDERS, data_paths, inputs_of, is_file_of_job, on_nodes
from clickmill.submit.outputs import outputs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.errors import Problem
    from clickmill.submit.request import Request


def data_overrides(request: Request) -> Iterator[str]:
    """Data sets in `./train_data` and the like are read from where `config` says that those come from.

    A volume that is mounted there comes first.
    """
    for index, dataset in enumerate(request.config.dataset):
        for key, texts in data_paths(dataset):
            paths = [_source(request, text) for text in texts]
            if paths != list(texts):
                yield f"dataset.{index}.{key}={json.dumps(paths)}"


def data_notes(request: Request) -> Iterator[Problem]:
    """What the job reads and nothing of it brings to the pods; only the image may have it."""
    for each in inputs_of(request):
        is_data = each.key[0] == "dataset"
        source = _source(request, each.text) if is_data else each.text
        if is_url(source):
            continue
        place = in_pod(request, source)
        if not _is_there(request, place):
            key = _folder_key(place)[0] if is_data else ""
            yield request.config.problem(_words(place, key), each.key)


def host_problems(request: Request) -> Iterator[Problem]:
    """URLs on the file system of a job that has none: every pod would end with an error."""
    backend = request.backend
    if backend.config.fs_name or backend.kubernetes.env.get(FS_NAME):
        return
    places = [(each.text, each.key) for each in inputs_of(request)]
    places += [(each.text, each.key) for each in outputs_of(request)]
    for text, key in places:
        if names_no_host(text):
            message = f"names no host; write it into the URL, or give `config.fs_name` or {FS_NAME}"
            yield request.config.problem(message, key)


def sources(request: Request) -> Iterator[str]:
    """What the job reads, as pods are told of it."""
    for each in inputs_of(request):
        yield _source(request, each.text) if each.key[0] == "dataset" else each.text


def _source(request: Request, text: str) -> str:
    """The text, or the place on the file system of the job that it stands for."""
    if is_url(text):
        return text
    place = in_pod(request, text)
    key, rest = _folder_key(place)
    files = request.backend.config
    remote = getattr(files, key) if key else ""
    return files.url_of(remote, *rest) if remote and not _is_on_volume(request, place) else text


def _folder_key(place: PurePosixPath) -> tuple[str, tuple[str, ...]]:
    """The key of `config` for a path of a pod, and what is behind its folder; empty where there is none."""
    if not place.is_relative_to(WORKING_FOLDER):
        return "", ()
    folder, *rest = (*place.relative_to(WORKING_FOLDER).parts, "")
    return FOLDERS.get(folder, ""), tuple(rest)


def in_pod(request: Request, text: str) -> PurePosixPath:
    """A path as an absolute one."""
    path = posixpath.join(WORKING_FOLDER, on_nodes(request.config, text).as_posix())
    return PurePosixPath(posixpath.normpath(path))


def _is_on_volume(request: Request, place: PurePosixPath) -> bool:
    return any(place.is_relative_to(volume.place) for volume in request.backend.kubernetes.volumes)


def _is_there(request: Request, place: PurePosixPath) -> bool:
    if place.is_relative_to(OUTPUT) or _is_on_volume(request, place):
        return True
    if has_magic(str(place)):  # `/data/*/log` with something mounted at `/data/day`
        fixed = next(parent for parent in place.parents if not has_magic(str(parent)))
        volumes = request.backend.kubernetes.volumes
        if any(PurePosixPath(volume.place).is_relative_to(fixed) for volume in volumes):
            return True
    in_folder = place.relative_to(WORKING_FOLDER) if place.is_relative_to(WORKING_FOLDER) else place
    return is_file_of_job(request, in_folder)


def _words(place: PurePosixPath, key: str) -> str:
    is_hidden = any(place.is_relative_to(folder) for folder in SCRATCH.values())
    image = "" if is_hidden else ", unless the image has it"
    or_key = f", give `config.{key}`" if key else ""
    return (
        f"pods will find nothing at `{place}`{image}; mount a volume there by `kubernetes.volumes`{or_key}, "
        "or name a URL"
    )
