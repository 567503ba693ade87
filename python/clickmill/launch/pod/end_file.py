"""The end of the run, as a file for the role: nobody else may be there to tell it."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "CLICKMILL_END_FILE"


class EndFile:
    """Is there when the run is over; `variables` tell the role where."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def variables(self) -> dict[str, str]:
        return {VARIABLE: str(self._path)}

    def tell(self) -> None:
        """The run is over."""
        self._path.touch()


def is_run_over() -> bool:
    """By the role: whether the process above it knows that the run is over."""
    path = os.environ.get(VARIABLE)
    return path is not None and Path(path).exists()


@contextmanager
def end_file() -> Iterator[EndFile]:
    """A file of this block, which is not there yet."""
    with tempfile.TemporaryDirectory(prefix="clickmill-end-") as folder:
        yield EndFile(Path(folder) / "is_over")
