"""Code of the user that travels with a job: what nodes would stumble over is told here. None of it is run."""

from __future__ import annotations

import ast
import sys
import warnings
from typing import TYPE_CHECKING

from clickmill.config.document import Place
from clickmill.config.needs import needed_files
from clickmill.store.named_path import is_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clickmill.config import Config
    from clickmill.errors import Problem


def code_problems(config: Config) -> Iterator[Problem]:
    """Files of models and readers that are no Python, or lack the class that is looked for."""
    for file in needed_files(config):
        if file.path.suffix != ".py" or not is_file(file.path):
            continue  # what is not there is told where files are collected
        place = config.place(file.key)
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(file.path.read_bytes())
        except SyntaxError as error:
            yield Place(str(file.path), error.lineno or 1).problem(f"is not valid Python: {error.msg}")
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            yield place.problem(f"names `{file.path}`, which is not Python that can be read: {error}")
        else:
            yield from _without_class(tree, file.path, _class_name(config, file.key[0], file.key[1]))


def missing_modules(files: Mapping[str, Path]) -> Iterator[Problem]:
    """What code imports that lies beside it here, and is not among the files of the job, by name."""
    for path in files.values():
        if path.suffix != ".py":
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(path.read_bytes())
        except (SyntaxError, OSError, ValueError, RecursionError, MemoryError):
            continue  # told by `code_problems` where it matters
        for line, name in _imported(tree):
            if f"{name}.py" in files:
                continue
            if (path.parent / f"{name}.py").is_file():
                file = path.parent / f"{name}.py"
                message = f"imports `{name}`, which does not travel: add `{file}` to `submit.files`"
                yield Place(str(path), line).problem(message)
            elif any((path.parent / name).glob("*.py")):
                message = (
                    f"imports `{name}`, a folder; nodes get files without their folders: put its code beside "
                    f"`{path.name}`, or install it where nodes have clickmill"
                )
                yield Place(str(path), line).problem(message)


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of the modules that are imported by name, without those of Python itself."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0):
                names = [module]
            case _:
                continue
        for name in dict.fromkeys(name.partition(".")[0] for name in names):
            if name not in sys.stdlib_module_names:
                yield node.lineno, name


def _class_name(config: Config, section: object, index: object) -> str:
    assert isinstance(index, int)
    return "Model" if section == "phase" else config.dataset[index].reader_class_name


def _without_class(tree: ast.Module, path: Path, name: str) -> Iterator[Problem]:
    """Only where the name is given nowhere: a class may be imported, assigned, or made in a branch."""
    if any(_gives(node, name) for node in ast.walk(tree)):
        return
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    there = ", ".join(f"`{each}`" for each in classes) or "none"
    yield Place(str(path)).problem(f"defines no class `{name}`; classes there: {there}")


def _gives(node: ast.AST, name: str) -> bool:
    match node:
        case ast.ClassDef(name=given) | ast.Name(id=given, ctx=ast.Store()):
            return given == name
        case ast.alias(name=whole, asname=given):
            return name == (given or whole) or whole == "*"
    return False
