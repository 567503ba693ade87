"""`phase`: which model is trained on which data set."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clickmill._limits import MAX_THREADS
from clickmill._section import Integer, Section
from clickmill.config.builtin import builtin_model


class PhaseConfig(Section):
    """One step of a run: a model and its data."""

    name: str
    """`phases` of a runner refers to it."""
    model: str
    """Name of a built-in model (`dnn`), or path of a file with a class `Model`."""
    dataset_name: str
    """Data set of this phase."""
    thread_num: Annotated[Integer, Field(ge=1, le=MAX_THREADS)] = 1
    """Workers of one thread each."""
    gradient_scale_strategy: Literal[0, 1, 2] = 0
    """Read for files of older systems: a batch's gradient is its mean, whatever the number of workers."""
    shuffle_filelist: bool = False
    """Shuffle the order of the files before each pass."""

    @property
    def builtin(self) -> str | None:
        """Name of the built-in model; None for a file of the user."""
        return builtin_model(self.model)
