"""`submit.start_cmd`: what nodes run, in the words of PaddleRec or our own."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.config import builtin_model
from clickmill.submit.package import config_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clickmill.config.document import KeyPath
    from clickmill.errors import Problem
    from clickmill.submit.request import Request

START: KeyPath = ("submit", "start_cmd")
_RUN = re.compile(r"(?:-m\s+(?:paddlerec|clickmill)\.run|(?:-m\s+)?\bclickmill\s+train)(?=\s|$)")
_OTHER_NAME = re.compile(r"-m\s+paddlerec\.run(?=\s|$)")
_RUN_ALONE = re.compile(
    rf"\s*(?:\S*python[\d.]*\s+(?:-u\s+)?)?{_RUN.pattern}\s+(?:-m|--model|--config)(?:\s+|=)\S+\s*"
)
_ENDS = frozenset({"&&", "||", ";", "|", "&"})
_MODEL = ("-m", "--model", "--config")
_SETTINGS = frozenset({"set", "export", "unset", "ulimit", "umask", "echo", ":"})
_SHELLS = frozenset({"sh", "bash", "dash"})
_OPTION = ("-", "+")
_NO_FILE = frozenset("cs")
"""Options of a shell whose commands are in an argument or on stdin."""
_WITH_VALUE = frozenset("oO")
_LONG_WITH_VALUE = frozenset({"--rcfile", "--init-file"})
_UNKNOWN = frozenset("$`*?[<>|&()")
"""Characters of what is no name: a shell puts another in its place, or takes it for more than a word."""


@dataclass(frozen=True, slots=True)
class StartCommand:
    """A command line for a shell."""

    text: str

    @property
    def model(self) -> str | None:
        """What `-m` of the run is given; None for a command that runs something else."""
        found = _RUN.search(self.text)
        if found is None:
            return None
        try:
            words = shlex.split(self.text[found.end() :])
        except ValueError:
            return None
        for index, word in enumerate(words):
            if word in _ENDS:
                break
            if word in _MODEL and index + 1 < len(words):
                return words[index + 1].removesuffix(";")
            name, equals, value = word.partition("=")
            if equals and name in _MODEL:
                return value
        return None

    @property
    def words(self) -> list[str] | None:
        """What a shell takes it for; None where it ends within quotes."""
        try:
            return shlex.split(self.text, comments=True)
        except ValueError:
            return None

    @property
    def scripts(self) -> list[str]:
        """Files that it begins with, as far as they can be told: with Python, where that runs no
        configuration, and with a shell. What comes later may be in another folder, or be made by then.
        """
        words = self._first
        python = [] if self.model else [word for word in words if word.endswith(".py")]
        shell = [
            _shell_script(words[index + 1 :])
            for index, word in enumerate(words)
            if posixpath.basename(word) in _SHELLS
        ]
        found = [script for script in (*python, *shell) if script and not _UNKNOWN & set(script)]
        return [script for script in found if not script.startswith("~")]

    @property
    def _first(self) -> list[str]:
        """Words of the first command that does more than to set something for those behind it."""
        lexer = shlex.shlex(self.text, posix=True, punctuation_chars=";&|()\n")
        lexer.whitespace, lexer.whitespace_split = " \t\r", True
        command: list[str] = []
        try:
            for word in lexer:
                if set(word) - set(";&|()\n"):
                    command.append(word)
                elif command and not _sets_something(command):
                    break
                else:
                    command = []
        except ValueError:
            return []
        return command

    @property
    def is_run_alone(self) -> bool:
        """Whether it runs a configuration, and does nothing else."""
        return _RUN_ALONE.fullmatch(self.text) is not None

    def as_ours(self, overrides: Sequence[str] = ()) -> str:
        """The same command for nodes that have clickmill, with what `--set` changes."""
        text = _OTHER_NAME.sub("-m clickmill.run", self.text)
        if not overrides:
            return text
        sets = shlex.join(word for override in overrides for word in ("--set", override))
        found = _RUN.search(text)
        end = len(text) if found is None else found.end()
        return f"{text[:end]} {sets}{text[end:]}"


def _sets_something(command: Sequence[str]) -> bool:
    """Whether it makes no file and goes to no other folder."""
    is_setting = command[0] in _SETTINGS or all("=" in word for word in command)
    return is_setting and not any(">" in word for word in command)


def _shell_script(words: Sequence[str]) -> str:
    """The file that a shell is given with these arguments; empty where it gets its commands otherwise."""
    rest = iter(words)
    for word in rest:
        if word[:1] not in _OPTION:
            return word
        letters = "" if word.startswith("--") else word[1:]
        if _NO_FILE & set(letters):
            return ""
        if word in _LONG_WITH_VALUE or letters[-1:] in _WITH_VALUE:
            next(rest, "")
    return ""


def start_command(request: Request) -> StartCommand:
    """The one of backend.yaml, else one that runs what is submitted."""
    submit = request.backend.submit
    if "start_cmd" in submit.model_fields_set:
        return StartCommand(submit.start_cmd)
    model = config_name(request.config) or request.source.model
    return StartCommand(f"python -m paddlerec.run -m {shlex.quote(model)}")


def start_problems(request: Request) -> Iterator[Problem]:
    """Nodes must train what was checked here: why they would train something else."""
    model = start_command(request).model
    if model is not None and not _is_submitted(request, model):
        submitted = request.config.file if config_name(request.config) else request.source.model
        message = f"runs `{model}`, but it is `{submitted}` that is submitted; name the same in both"
        yield request.backend.problem(message, START)


def start_notes(request: Request) -> Iterator[Problem]:
    """What of it does nothing where processes of the job are started as clickmill starts them."""
    command = start_command(request)
    if command.is_run_alone:
        return
    what = "has no effect" if command.model is None else "has no effect but for the file that `-m` names"
    message = f"{what}: processes of the job run clickmill, and nothing else; use `--set` and `config.yaml`"
    yield request.backend.problem(message, START)


def _is_submitted(request: Request, model: str) -> bool:
    name = config_name(request.config)
    if name is None:
        return builtin_model(model) == builtin_model(request.source.model)
    return os.path.normpath(model) == name or Path(model).resolve() == Path(request.config.file).resolve()
