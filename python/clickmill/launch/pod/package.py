"""The files of a job, from where its ConfigMap is mounted, in the folder in which the role works.

Links, not the mount itself: a role may write beside its configuration, and a ConfigMap cannot be written to.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from clickmill.store.durable import writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

logger = logging.getLogger(__name__)


def link_package(package: Path, folder: Path) -> list[Path]:
    """Link every file of `package` to its place below `folder`; the links. Nothing where there is no package.

    Links of an earlier life of the container are replaced; a file of another kind stays, and is told of.
    """
    links = []
    for relative in sorted(_files(package, package)):
        link = folder / relative
        if link.exists() and not link.is_symlink():
            logger.warning("`%s` is there already and hides the file of the package", link)
            continue
        with writing(link):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(package / relative)
        links.append(link)
    return links


def _files(package: Path, folder: Path) -> Iterator[Path]:
    """Relative to the package. `..data` and the like are how Kubernetes changes a mount in one step."""
    if not folder.is_dir():
        return
    for entry in os.scandir(folder):
        path = folder / entry.name
        if entry.name.startswith(".."):
            continue
        if entry.is_dir():
            yield from _files(package, path)
        elif entry.is_file():
            yield path.relative_to(package)
