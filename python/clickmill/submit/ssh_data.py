"""What hosts that are reached with ssh have of a job: its files, and nothing else of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.submit.inputs import not_on_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.errors import Problem
    from clickmill.submit.request import Request


def host_notes(request: Request) -> Iterator[Problem]:
    """What the job reads from its own folder on the hosts, to which it does not travel."""
    if request.backend.ssh.workspace:
        return
    for path, key in not_on_nodes(request, Path.is_absolute):
        message = (
            f"hosts get the files of the job alone, and `{path}` is none of them; name an absolute path "
            "that every host has, a URL, or by `ssh.workspace` a folder that lies there with its data"
        )
        yield request.config.problem(message, key)
