"""Keys that are written in two spellings: `k8s_cpu_cores` and `k8s-cpu-cores` are one key.

The document is left as it was written, but for the spelling that loses: the last line of a key wins, as where
a key is written twice in the same spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from clickmill._section import Section
from clickmill.config.document import dotted

if TYPE_CHECKING:
    from clickmill.config.document import Document, KeyPath


def join_spellings(document: Document, section: type[BaseModel]) -> None:
    """Drop all spellings of a key but the last, with a note that names both lines."""
    _join(document, document.value, (), section)


def as_written(document: Document, section: type[BaseModel], override: str) -> str:
    """A `path=value` text with the keys of its path in the spelling of the file, so that it replaces them."""
    path, equals, value = override.partition("=")
    inside: Any = document.value
    model: type[BaseModel] | None = section
    parts = []
    for part in path.strip().split("."):
        name = part if model is None else _canonical(model, part)
        written = name
        if isinstance(inside, dict):
            same = (key for key in inside if model is not None and _canonical(model, key) == name)
            written = part if part in inside else next(same, name)
            inside = inside.get(written)
        parts.append(written)
        model = _section_of(model, name)
    return f"{'.'.join(parts)}{equals}{value}"


def _join(document: Document, value: Any, path: KeyPath, section: type[BaseModel]) -> None:
    if not isinstance(value, dict):
        return
    last: dict[str, str] = {}
    for key in sorted(value, key=lambda key: _line(document, (*path, key))):
        name = _canonical(section, key)
        if name in last:
            before, after = document.key_place((*path, last[name])), document.key_place((*path, key))
            message = (
                f"is the same key as `{last[name]}` in line {before.line}; "
                f"the last one wins, that of line {after.line}"
            )
            document.notes.append(after.problem(message, key=dotted((*path, key))))
            document.forget((*path, last[name]))
            del value[last[name]]
        last[name] = key
    for name, key in last.items():
        inner = _section_of(section, name)
        if inner is not None:
            _join(document, value[key], (*path, key), inner)


def _line(document: Document, path: KeyPath) -> tuple[int, int]:
    place = document.key_place(path)
    return (place.line or 0, place.column or 0)


def _canonical(section: type[BaseModel], key: str) -> str:
    return str(section.canonical_key(key)) if issubclass(section, Section) else key


def _section_of(section: type[BaseModel] | None, key: str) -> type[BaseModel] | None:
    """The section behind a key; None where its keys are free or there are none."""
    if section is None or key not in section.model_fields:
        return None
    annotation = section.model_fields[key].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None
