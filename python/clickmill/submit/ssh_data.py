"""What hosts that are reached with ssh have of a job: its files, and nothing else of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clickmill.store.remote.url import is_url
from clickmill.submit.inputs import inputs_of, is_file_of_job, on_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickmill.errors import Problem
    from clickmill.submit.request import Request


def host_notes(request: Request) -> Iterator[Problem]:
    """What the job reads from its own folder on the hosts, to which it does not travel."""
    if request.backend.ssh.workspace:
        return
    for each in inputs_of(request):
        path = on_nodes(request.config, each.text)
        if not is_url(each.text) and not path.is_absolute() and not is_file_of_job(request, path):
            message = (
                f"hosts get the files of the job alone, and `{path}` is none of them; name an absolute path "
                "that every host has, a URL, or by `ssh.workspace` a folder that lies there with its data"
            )
            yield request.config.problem(message, each.key)
