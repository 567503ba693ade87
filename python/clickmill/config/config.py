"""The whole of config.yaml."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import Field, PrivateAttr

from clickmill._section import Section, Texts
from clickmill.config.dataset import DatasetConfig
from clickmill.config.document import Document, KeyPath, Place, dotted
from clickmill.config.hyper import HyperParameters
from clickmill.config.phase import PhaseConfig
from clickmill.config.runner import RunnerConfig
from clickmill.config.translate import written_path
from clickmill.errors import ConfigError, Problem


class Config(Section):
    """A run: which runners, on which phases, with which data."""

    workspace: str
    """Folder that `{workspace}` stands for, relative to this file; or the dotted name of a built-in model."""
    mode: Annotated[Texts, Field(min_length=1)]
    """Names of the runners to run, in order."""
    runner: Annotated[tuple[RunnerConfig, ...], Field(min_length=1)]
    """Ways to run."""
    phase: Annotated[tuple[PhaseConfig, ...], Field(min_length=1)]
    """Models and their data."""
    dataset: tuple[DatasetConfig, ...] = ()
    """Data sets."""
    hyper_parameters: HyperParameters = HyperParameters()
    """Optimizers, tables and the model's own parameters."""
    debug: bool = False
    """Log the time of every stage of the pipeline."""

    _file: str = PrivateAttr(default="")
    _notes: tuple[Problem, ...] = PrivateAttr(default=())
    _document: Document | None = PrivateAttr(default=None)

    @property
    def file(self) -> str:
        """Where it was read from; empty for one made in code."""
        return self._file

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What is allowed but looks like a mistake."""
        return self._notes

    def problem(self, message: str, path: KeyPath) -> Problem:
        """A problem with the value at `path`, with the line in which it stands, for what is found later."""
        return self.place(path).problem(message, key=dotted(self._written(path)))

    def place(self, path: KeyPath) -> Place:
        """Where the value at `path` stands."""
        if self._document is None:
            return Place(self.file)
        return self._document.value_place(self._written(path))

    def _written(self, path: KeyPath) -> KeyPath:
        return path if self._document is None else written_path(self._document, type(self), path)

    def placed(self, error: ConfigError) -> ConfigError:
        """The same error with the lines of the keys that its problems name; `error` where it names none."""
        if self._document is None or not error.problems:
            return error
        found = [self.problem(each.message, tuple((each.key or "").split("."))) for each in error.problems]
        return ConfigError.of(found, hint=error.hint)

    def runners(self) -> tuple[RunnerConfig, ...]:
        """Runners that `mode` names, in its order."""
        return tuple(self.runner_named(name) for name in self.mode)

    def phases_of(self, runner: RunnerConfig) -> tuple[PhaseConfig, ...]:
        """Phases of a runner in order; all where it names none."""
        return tuple(self.phase_named(name) for name in runner.phases) if runner.phases else self.phase

    def runner_named(self, name: str) -> RunnerConfig:
        """Raises ConfigError where there is none."""
        return _named(self.runner, "runner", name)

    def phase_named(self, name: str) -> PhaseConfig:
        """Raises ConfigError where there is none."""
        return _named(self.phase, "phase", name)

    def dataset_named(self, name: str) -> DatasetConfig:
        """Raises ConfigError where there is none."""
        return _named(self.dataset, "dataset", name)


Named = TypeVar("Named", RunnerConfig, PhaseConfig, DatasetConfig)


def _named(items: tuple[Named, ...], kind: str, name: str) -> Named:
    for item in items:
        if item.name == name:
            return item
    known = ", ".join(f"`{item.name}`" for item in items) or "none"
    raise ConfigError(f"there is no {kind} `{name}`; known: {known}")
