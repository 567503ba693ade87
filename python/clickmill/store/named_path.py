"""Paths as people write them: with `~` at the start, too long for any file, or with what no name may have.

What cannot be looked at is no file and no folder here; whoever opens it is told why.
"""

from __future__ import annotations

import os
from pathlib import Path

from clickmill.errors import ConfigError


def expanded(text: str) -> Path:
    """With the folder that `~` or `~user` at its start stands for. Raises ConfigError where it is unknown."""
    try:
        found = os.path.expanduser(text)  # noqa: PTH111  # pathlib takes `./~name` for a user as well
    except ValueError:  # what no user can be called
        found = text
    if found.startswith("~"):
        home = text.partition("/")[0]
        whose = f"no user `{home[1:]}`" if home[1:] else "no home folder of yours"
        remedy = f"name the folder itself, or write `./{text}` where it is really called so"
        raise ConfigError(f"`{text}` begins with `{home}`, but this machine knows {whose}; {remedy}")
    return Path(found)


def resolved(text: str, folder: Path) -> Path | None:
    """The file that `text` names, relative to `folder`; None where it can be none."""
    try:
        return (folder / expanded(text)).resolve()
    except (ConfigError, OSError, RuntimeError, ValueError):  # a RuntimeError is a circle of links
        return None


def home() -> Path | None:
    """The folder of this user; None where nothing says which it is, as in a container for any user."""
    try:
        return expanded("~")
    except ConfigError:
        return None


def is_file(path: str | Path) -> bool:
    """Whether it is known to be a regular file."""
    return os.path.isfile(path)  # noqa: PTH113  # pathlib raises where a name is too long


def is_folder(path: str | Path) -> bool:
    """Whether it is known to be a folder."""
    return os.path.isdir(path)  # noqa: PTH112
