"""What a backend would do with a job, without doing it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clickmill.submit import ssh
from clickmill.submit.commands import local_overrides, mpi_command
from clickmill.submit.file_system import shown_variables
from clickmill.submit.kubernetes import handing_over as kubernetes
from clickmill.submit.paddlecloud import api as paddlecloud
from clickmill.submit.request import Outcome

if TYPE_CHECKING:
    from clickmill.submit.request import Request


def plan(request: Request) -> Outcome:
    """Files or the command of a job; secrets are masked."""
    match request.backend.backend:
        case "PaddleCloud":
            return paddlecloud.plan(request)
        case "SSH":
            return ssh.plan(request)
        case "MPI":
            return Outcome(_facts(request, list(mpi_command(request, is_plan=True))))
        case "Local":
            source = replace(request.source, overrides=local_overrides(request))
            return Outcome(_facts(request, ["clickmill", "train", *source.arguments]))
        case "Kubernetes":
            return kubernetes.plan(request)


def _facts(request: Request, command: list[str]) -> dict[str, Any]:
    environment = shown_variables(request)
    more = {"environment": environment} if environment else {}
    return {"backend": request.backend.backend, **more, "command": command}
