"""What a backend would do with a job, without doing it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clickmill.submit.commands import local_overrides, mpi_command
from clickmill.submit.kubernetes import handing_over as kubernetes
from clickmill.submit.paddlecloud import api as paddlecloud
from clickmill.submit.request import Outcome
from clickmill.submit.ssh import ssh_facts

if TYPE_CHECKING:
    from clickmill.submit.request import Request


def plan(request: Request) -> Outcome:
    """Files or the command of a job; secrets are masked."""
    match request.backend.backend:
        case "PaddleCloud":
            return paddlecloud.plan(request)
        case "SSH":
            return Outcome(ssh_facts(request))
        case "MPI":
            return Outcome({"backend": "MPI", "command": list(mpi_command(request))})
        case "Local":
            source = replace(request.source, overrides=local_overrides(request))
            return Outcome({"backend": "Local", "command": ["clickmill", "train", *source.arguments]})
        case "Kubernetes":
            return kubernetes.plan(request)
