"""`submit.start_cmd`: what nodes run, in the words of PaddleRec or our own."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUN = re.compile(r"(?:-m\s+(?:paddlerec|clickmill)\.run|(?:-m\s+)?\bclickmill\s+train)(?=\s|$)")
_OTHER_NAME = re.compile(r"-m\s+paddlerec\.run(?=\s|$)")
_ENDS = frozenset({"&&", "||", ";", "|", "&"})
_MODEL = ("-m", "--model", "--config")


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
            return None  # an open quote; the shell will say so
        for index, word in enumerate(words):
            if word in _ENDS:
                break
            if word in _MODEL and index + 1 < len(words):
                return words[index + 1].removesuffix(";")
            name, equals, value = word.partition("=")
            if equals and name in _MODEL:
                return value
        return None

    def as_ours(self, overrides: Sequence[str] = ()) -> str:
        """The same command for nodes that have clickmill, with what `--set` changes."""
        text = _OTHER_NAME.sub("-m clickmill.run", self.text)
        if not overrides:
            return text
        sets = shlex.join(word for override in overrides for word in ("--set", override))
        found = _RUN.search(text)
        end = len(text) if found is None else found.end()
        return f"{text[:end]} {sets}{text[end:]}"
