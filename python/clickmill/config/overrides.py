"""`--set runner.0.epochs=2`: single values changed on the command line, checked like those in the file."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from clickmill.config.document import Document, KeyPath, Place, parse_document
from clickmill.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATH = re.compile(r"[\w.-]*")


def override_place(text: str) -> Place:
    """Where an override was written: its path alone, for its value may be a secret, or hold one.

    So may what only looks like a path: of that as much is told as is one.
    """
    path, equals, _ = text.partition("=")
    found = _PATH.match(path.strip()) if equals else None
    if found is None or not found[0]:
        return Place("--set")
    return Place(f"--set {found[0]}{'' if found[0] == path.strip() else '...'}")


def is_override(place: Place) -> bool:
    """Whether something was written as an override, not in a file."""
    return place.file.split(" ")[0] == "--set"


def apply_overrides(document: Document, overrides: Iterable[str]) -> list[Problem]:
    """Sets each `path=value` in the document; the value is YAML. Items of a list go by index or by name."""
    problems: list[Problem] = []
    for text in overrides:
        place = override_place(text)
        path, equals, value = text.partition("=")
        if not equals or not path.strip():
            problems.append(
                place.problem("must be of the form `path=value`, for example `runner.0.epochs=2`")
            )
            continue
        try:
            # A path that begins so needs quotes in YAML, which a shell takes away.
            is_path = value.strip().startswith("{workspace}")
            parsed = parse_document(json.dumps(value.strip()) if is_path else value, place.file).value
        except ConfigError as error:
            problems.extend(Problem(problem.message, place.file) for problem in error.problems)
            continue
        problem = _assign(document, path.strip().split("."), parsed, place)
        if problem is not None:
            problems.append(problem)
    return problems


def _assign(document: Document, parts: list[str], value: Any, place: Place) -> Problem | None:
    if not isinstance(document.value, dict):
        document.value = {}
    container: Any = document.value
    path: KeyPath = ()
    for position, part in enumerate(parts):
        step: str | int
        if isinstance(container, list):
            index = _index(container, part)
            if index is None:
                known = ", ".join(f"`{name}`" for name in _names(container)) or "none have a name"
                return place.problem(f"no item `{part}`: there are {len(container)}, by name: {known}")
            step = index
        elif isinstance(container, dict):
            step = part
            if container.get(part) is None:
                container[part] = {}
                document.values[*path, step] = place
        else:
            return place.problem(f"`{'.'.join(parts[:position])}` is a single value and has no keys")
        path = (*path, step)
        if position == len(parts) - 1:
            container[step] = value
        elif container[step] is None:
            container[step] = {}
        container = container[step]
    document.forget(path)
    document.keys[path] = document.values[path] = place
    return None


def _index(items: list[Any], part: str) -> int | None:
    if part.isdecimal() and int(part) < len(items):
        return int(part)
    names = _names(items)
    return names.index(part) if part in names else None


def _names(items: list[Any]) -> list[str | None]:
    return [item.get("name") if isinstance(item, dict) else None for item in items]
