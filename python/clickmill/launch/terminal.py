"""Whether somebody sees what is written as it comes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from clickmill.launch.mpi import RANK, SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_terminal(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether a stream is a terminal of a person.

    mpirun makes a terminal for each of its ranks, and copies what it reads there to wherever its own output
    goes: that may be a file, and is the output of all ranks.
    """
    return stream.isatty() and not _is_one_of_several(os.environ if environ is None else environ)


def _is_one_of_several(environ: Mapping[str, str]) -> bool:
    size = next((environ[name].strip() for name in SIZE if environ.get(name)), "")
    return size != "1" and any(environ.get(name) for name in RANK)
