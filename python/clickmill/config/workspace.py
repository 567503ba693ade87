"""`workspace`: what `{workspace}` stands for.

A folder is taken relative to the file that names it, so that a run does not depend on where it is started.
A dotted name such as `paddlerec.models.rank.dnn` is our built-in model of that name: `{workspace}/model.py`
is then that model, and every other `{workspace}` the current folder, as the package ships no data.
"""

from __future__ import annotations

import os
import re
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clickmill.config.builtin import BUILTIN_MODELS, builtin_model, is_dotted_name
from clickmill.config.document import Document, KeyPath, dotted
from clickmill.config.translate import listed, nearest

if TYPE_CHECKING:
    from clickmill.errors import Problem

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_PACKAGE_PREFIX = "paddlerec::"


def substitute_workspace(document: Document) -> list[Problem]:
    """Replaces `{workspace}` in every text of the document."""
    if not isinstance(document.value, dict):
        return []
    workspace = document.value.get("workspace")
    if not isinstance(workspace, str):
        return []
    problems: list[Problem] = []
    model = None
    if _is_model(workspace):
        model = builtin_model(workspace)
        if model is None:
            name = workspace.rpartition(".")[2]
            known = listed(list(BUILTIN_MODELS))
            message = f"is not a folder, and `{name}` is no built-in model; known: {known}"
            place = document.value_place(("workspace",))
            problems.append(
                place.problem(message, key="workspace", suggestion=nearest(name, list(BUILTIN_MODELS)))
            )
    folder = workspace_folder(document.file, workspace)
    document.value = _Substitution(document, folder, model, problems).walk(document.value, ())
    return problems


def workspace_folder(file: str, workspace: str) -> str:
    """What `{workspace}` stands for: a folder relative to the file that names it, or the current one."""
    return "." if _is_model(workspace) else os.path.normpath(Path(file).parent / workspace)


def _is_model(workspace: str) -> bool:
    return is_dotted_name(workspace) and not os.path.lexists(workspace)


class _Substitution:
    """Walks the values and replaces placeholders."""

    def __init__(self, document: Document, folder: str, model: str | None, problems: list[Problem]) -> None:
        self.document = document
        self.folder = folder
        self.model = model
        self.problems = problems

    def walk(self, value: Any, path: KeyPath) -> Any:
        if isinstance(value, dict):
            return {key: self.walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.walk(item, (*path, index)) for index, item in enumerate(value)]
        return self.text(value, path) if isinstance(value, str) else value

    def text(self, text: str, path: KeyPath) -> str:
        if self.model is not None and text == "{workspace}/model.py" and path[-1] == "model":
            return self.model
        if path[-1] == "data_path" or path[-2:-1] == ("data_path",):
            text = text.removeprefix(_PACKAGE_PREFIX)
        for name in _PLACEHOLDER.findall(text):
            if name != "workspace" and SequenceMatcher(None, name, "workspace").ratio() > 0.75:
                self.problems.append(
                    self.document.value_place(path).problem(
                        f"unknown placeholder `{{{name}}}`", key=dotted(path), suggestion="{workspace}"
                    )
                )
        if "{workspace}" not in text:
            return text
        return os.path.normpath(text.replace("{workspace}", self.folder))
