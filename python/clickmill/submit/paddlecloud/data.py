"""Where nodes of PaddleCloud find what the job reads: in the folders that the platform fills or mounts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from clickmill.submit.inputs import FOLDERS, not_on_nodes
from clickmill.submit.paddlecloud.config_ini import AFS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import PurePath

    from clickmill.config.backend import BackendConfig
    from clickmill.errors import Problem
    from clickmill.submit.request import Request

_OF_CLUSTER = {"mpi": ("train_data", "test_data", "thirdparty"), "k8s": ("afs",)}
"""Those of `FOLDERS` that nodes have."""


def node_notes(request: Request) -> Iterator[Problem]:
    """What the job reads and nothing brings to the nodes."""
    backend = request.backend
    if backend.cluster_type is None:
        return  # told already
    folders = _OF_CLUSTER[backend.cluster_type]
    there = ", ".join(f"`./{folder}`" for folder in folders)
    keys = ", ".join(f"`config.{FOLDERS[folder]}`" for folder in folders)
    brought = f"with `cluster_type: {backend.cluster_type}` they have {there}, from {keys}"
    for path, key in not_on_nodes(request, lambda path: is_from_platform(backend, path)):
        message = f"nodes will find nothing at `{path}`: {brought}; name a path in there, or a URL"
        yield request.config.problem(message, key)


def is_from_platform(backend: BackendConfig, path: PurePath) -> bool:
    """Whether a path or pattern, relative to the working folder of nodes, names data from the platform."""
    if path.is_absolute():
        return backend.cluster_type == "k8s" and path.is_relative_to(AFS_FOLDER)
    folders = _OF_CLUSTER.get(backend.cluster_type or "", ())
    return any(fnmatchcase(folder, part) for part in path.parts[:1] for folder in folders)
