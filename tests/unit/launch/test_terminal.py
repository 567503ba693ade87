from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from clickmill.launch.terminal import is_terminal


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A real one, of which nobody reads the other end."""
    there, here = os.openpty()
    with os.fdopen(here, "w") as stream:
        yield stream
    os.close(there)


def test_terminal_is_one(terminal: TextIO) -> None:
    assert is_terminal(terminal, {"PATH": "/bin"})


def test_file_is_none() -> None:
    with Path(os.devnull).open("w") as stream:
        assert not is_terminal(stream, {})


@pytest.mark.parametrize(
    "environ",
    [
        {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
        {"PMI_RANK": "1", "PMI_SIZE": "4"},
        {"PMIX_RANK": "1", "SLURM_NTASKS": "4"},
    ],
)
def test_terminal_that_mpirun_has_made_for_a_rank_is_none(terminal: TextIO, environ: dict[str, str]) -> None:
    assert not is_terminal(terminal, environ)


def test_only_rank_of_a_job_may_have_a_terminal_of_a_person(terminal: TextIO) -> None:
    # `srun --pty bash`, and what is typed there.
    assert is_terminal(terminal, {"PMIX_RANK": "0", "SLURM_NTASKS": "1"})
