"""What is asked of a backend, and what comes of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clickmill.config.backend.checks import submit_notes, submit_problems
from clickmill.errors import ConfigError
from clickmill.submit.code import code_problems
from clickmill.submit.file_system import file_system_notes
from clickmill.submit.final import final_config, final_problems
from clickmill.submit.kubernetes.data import data_notes, host_problems
from clickmill.submit.kubernetes.outputs import output_notes, output_problems
from clickmill.submit.kubernetes.plan import pod_problems
from clickmill.submit.paddlecloud.data import node_notes
from clickmill.submit.ssh_data import host_notes
from clickmill.submit.start import start_notes, start_problems

if TYPE_CHECKING:
    from clickmill.config import Config, RunnerConfig
    from clickmill.config.backend import BackendConfig
    from clickmill.errors import ClickmillError, Problem
    from clickmill.launch.role import Source


@dataclass(frozen=True, slots=True)
class Request:
    """One job to submit."""

    config: Config
    backend: BackendConfig
    source: Source
    """The same configuration as processes of the job are to read it: `--set` included."""

    @property
    def runner(self) -> RunnerConfig:
        """The one that is submitted."""
        return self.config.runners()[0]

    @property
    def place(self) -> str:
        """`runner.0`: how overrides name the runner."""
        return f"runner.{self.config.runner.index(self.runner)}"

    def check(self) -> tuple[Problem, ...]:
        """Raise ConfigError with all that keeps it from being submitted; what else is worth a word."""
        name, told = self.backend.backend, self.backend.submit.model_fields_set
        has_idle_start = "start_cmd" in told and name != "PaddleCloud"
        is_one = len(self.config.mode) == 1
        final = final_config(self) if is_one else self.config
        problems = [
            *submit_problems(final, self.backend, self.source.overrides),
            *(final_problems(self, final) if is_one else ()),
            *(start_problems(self) if has_idle_start else ()),
            *code_problems(self.config),
            *(pod_problems(self.config, self.backend) if name == "Kubernetes" else ()),
            *((*host_problems(self), *output_problems(self)) if is_one and name == "Kubernetes" else ()),
        ]
        if problems:
            raise ConfigError.of(sorted(set(problems), key=lambda problem: problem.order))
        return (
            *submit_notes(self.config, self.backend),
            *(start_notes(self) if has_idle_start else ()),
            *file_system_notes(self),
            *((*data_notes(self), *output_notes(self)) if name == "Kubernetes" else ()),
            *(host_notes(self) if name == "SSH" else ()),
            *(node_notes(self) if name == "PaddleCloud" else ()),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a backend did, or would do."""

    facts: dict[str, Any]
    """For `--json`."""
    files: dict[str, str] = field(default_factory=dict)
    """What was generated, by name; secrets masked. Only of a dry run."""
    objects: list[dict[str, Any]] = field(default_factory=list)
    """What the files say, where they are objects of Kubernetes."""
    words: str = ""
    """What to know of the command, in one line."""
    failure: ClickmillError | None = None
    """Why the job is not under way, though all that could be done here has been."""

    @property
    def command_line(self) -> str:
        """The command of a job that is one, for a shell, with what to know of it in a comment."""
        comment = f"# {self.words}\n" if self.words else ""
        environment = self.facts.get("environment", {})
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in environment.items())
        return f"{comment}{variables}{shlex.join(self.facts['command'])}"
